// Arrays in MATLAB's files of versions 5 to 7 as vectors.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/base/error.h"
#include "partition/readers/matlab5.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {

bool accepts_matlab5_vector(const std::filesystem::path& path) { return matlab5::is_matlab5_file(path); }

VectorContents open_matlab5_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns) {
  const InputFile file(path);
  const matlab5::Variable variable = matlab5::find_array(file, choice.object, names_of_role(choice.role));
  const matlab5::Variable* const found = &variable;
  const bool row = columns <= 1 && found->rows == 1;  // also a row is a vector
  if (columns == VectorFile::kAsStored) columns = row ? 1 : std::max<std::int64_t>(1, found->cols);
  if (!row && found->cols != columns)
    throw Error(ErrorKind::input,
                fmt::format("{}: {} is a {}; it must have {}", path.string(), found->name, matlab5::describe(*found),
                            columns == 1 ? "one column" : fmt::format("{} columns", columns)),
                found->dense() ? columns_setting(found->rows, found->cols) : "");
  const auto values = std::make_shared<const HostVector<double>>(matlab5::read_dense(file, *found));
  return {row ? found->cols : found->rows, columns, [values, columns](std::int64_t begin, std::int64_t end) {
            return HostVector<double>(values->begin() + begin * columns, values->begin() + end * columns);
          }};
}

}  // namespace shardmat
