// The list of vector formats of other programs.
#include "partition/vectors/vector_formats.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

const VectorFormat kFormats[] = {
    {"petsc", ".petsc", accepts_petsc_vector, open_petsc_vector, make_petsc_sink},
    {"hypre-ij", ".00000", accepts_hypre_vector, open_hypre_vector, nullptr, make_hypre_text_sink, true},
    {"hypre-ij", ".00000.bin", accepts_hypre_vector, open_hypre_vector, nullptr, make_hypre_binary_sink, true},
    {"matlab5", "", accepts_matlab5_vector, open_matlab5_vector, nullptr},
    {"matlab-hdf5", ".mat", accepts_matlab_vector, open_matlab5_vector, make_matlab_sink},
    {"harwell-boeing", "", accepts_harwell_boeing_vector, open_harwell_boeing_vector, nullptr},
    {"freefem", "", accepts_freefem_vector, open_freefem_vector, nullptr},
    {"text", ".txt", accepts_text_vector, open_text_vector, make_text_sink},
};

}  // namespace

std::span<const VectorFormat> vector_formats() { return kFormats; }

const VectorFormat* vector_format_of(const std::filesystem::path& path) {
  for (const VectorFormat& format : kFormats)
    if (format.accepts(path)) return &format;
  return vector_format_for(path);
}

const VectorFormat* vector_format_for(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  for (const VectorFormat& format : kFormats)
    if (!format.suffix.empty() && name.size() > format.suffix.size() && name.ends_with(format.suffix)) return &format;
  return nullptr;
}

void require_columns(const VectorFormat& format, const std::filesystem::path& path, std::int64_t columns) {
  if (columns != 1 && format.one_column)
    throw Error(ErrorKind::usage,
                fmt::format("{}: a file of the format {} holds one vector; take .npy or .h5 for {} columns", path.string(),
                            format.name, columns));
}

std::vector<std::string> names_of_role(const std::string& role) {
  std::vector<std::string> names{role};
  if (role.size() > 1 && role.back() == '0') names.push_back(role.substr(0, role.size() - 1));
  return names;
}

std::string columns_setting(std::int64_t rows, std::int64_t found) {
  return rows > 1 && found > 0 ? fmt::format("right_hand_sides={}", found) : "";
}

}  // namespace shardmat
