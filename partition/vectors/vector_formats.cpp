// The list of vector formats of other programs.
#include "partition/vectors/vector_formats.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

const VectorFormat kFormats[] = {
    {.name = "petsc",
     .suffix = ".petsc",
     .accepts = accepts_petsc_vector,
     .open = open_petsc_vector,
     .make_sink = make_petsc_sink},
    {.name = "hypre-ij",
     .suffix = ".00000",
     .accepts = accepts_hypre_vector,
     .open = open_hypre_vector,
     .make_part_sink = make_hypre_text_sink,
     .one_column = true},
    {.name = "hypre-ij",
     .suffix = ".00000.bin",
     .accepts = accepts_hypre_vector,
     .open = open_hypre_vector,
     .make_part_sink = make_hypre_binary_sink,
     .one_column = true},
    {.name = "matlab5", .accepts = accepts_matlab5_vector, .open = open_matlab5_vector},
    {.name = "matlab-hdf5",
     .suffix = ".mat",
     .accepts = accepts_matlab_vector,
     .open = open_matlab5_vector,
     .make_sink = make_matlab_sink},
    {.name = "harwell-boeing", .accepts = accepts_harwell_boeing_vector, .open = open_harwell_boeing_vector},
    {.name = "freefem", .accepts = accepts_freefem_vector, .open = open_freefem_vector},
    {.name = "text",
     .suffix = ".txt",
     .accepts = accepts_text_vector,
     .open = open_text_vector,
     .make_sink = make_text_sink},
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
