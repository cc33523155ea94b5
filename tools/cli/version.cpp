#include "tools/cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "comm/mpi_library.h"
#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/isa.h"

namespace shardmat::tools {
namespace {

/// The instruction sets for which the host kernels of this program are compiled.
std::vector<std::string_view> compiled_sets() {
#if defined(__x86_64__)
  return {name(Isa::baseline), name(Isa::avx2), name(Isa::avx512)};
#else
  return {name(Isa::baseline)};
#endif
}

/// "90-real", "80-virtual": as CMAKE_CUDA_ARCHITECTURES names them; empty without CUDA.
std::vector<std::string> cuda_architectures() {
  std::vector<std::string> names;
  std::string_view rest = SHARDMAT_CUDA_ARCHITECTURES;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

std::string or_left_out(std::string_view version) { return std::string(version.empty() ? "left out" : version); }

std::string nccl_text() {
  const std::string loaded = nccl_version(), of_build = nccl_version_of_build();
  return !loaded.empty() || of_build.empty() ? or_left_out(loaded) : of_build + " or newer is not installed here";
}

}  // namespace

std::string version() { return commit().empty() ? version_number() : version_number() + " (" + commit() + ")"; }

std::string version_text() {
  const std::string_view cuda = SHARDMAT_CUDA_VERSION;
  return fmt::format(
      "shardmat {}\nbuild     {}\ncompiler  {}\nhost      {} (this CPU: {})\nCUDA      {}{}\nNCCL      {}\nMPI       {}\n"
      "HDF5      {}, {}",
      version(), SHARDMAT_BUILD_TYPE, SHARDMAT_COMPILER, fmt::join(compiled_sets(), " "), name(best_isa()),
      or_left_out(cuda), cuda.empty() ? "" : fmt::format(", architectures {}", SHARDMAT_CUDA_ARCHITECTURES), nccl_text(),
      mpi_library(), SHARDMAT_HDF5_VERSION, SHARDMAT_HDF5_PARALLEL ? "parallel" : "serial");
}

std::string version_json() {
  using nlohmann::ordered_json;
  const std::string_view cuda = SHARDMAT_CUDA_VERSION;
  const std::string nccl = nccl_version();
  const ordered_json json{
      {"version", version_number()},
      {"commit", commit()},
      {"build_type", SHARDMAT_BUILD_TYPE},
      {"compiler", SHARDMAT_COMPILER},
      {"instruction_sets", compiled_sets()},
      {"instruction_set_of_cpu", name(best_isa())},
      {"cuda", cuda.empty() ? ordered_json() : ordered_json{{"version", cuda}, {"architectures", cuda_architectures()}}},
      {"nccl", nccl.empty() ? ordered_json() : ordered_json(nccl)},
      {"mpi", mpi_library()},
      {"hdf5", {{"version", SHARDMAT_HDF5_VERSION}, {"parallel", bool(SHARDMAT_HDF5_PARALLEL)}}}};
  return json.dump(2);
}

}  // namespace shardmat::tools
