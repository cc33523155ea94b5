#include "tools/commands/input_matrix.h"

#include <fmt/format.h>

#include <filesystem>

#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/generators/generator.h"
#include "partition/input_kind.h"
#include "partition/readers/reader.h"
#include "tools/progress_bar.h"

namespace shardmat::tools {

std::string known_suffixes() {
  std::string text = ".h5";
  for (const Reader& reader : readers()) text.append(" ").append(reader.suffixes);
  return text;
}

InputMatrix open_input(const std::string& input, bool allow_nonfinite, bool say) {
  const InputKind kind = kind_of_input(input);
  if (kind == InputKind::generated) return {make_generator(input)};
  if (kind == InputKind::hdf5) {
    auto file = ShardFile::open(input, allow_nonfinite);
    const ShardFile* const shown = file.get();
    return {std::move(file), shown};
  }
  ReadOptions read;
  read.allow_nonfinite = allow_nonfinite;
  read.progress = make_progress_bar();
  const Timer timer;
  auto matrix = std::make_shared<const HostCsr>(read_matrix(input, read));
  const double seconds = timer.seconds();
  const auto bytes = static_cast<double>(std::filesystem::file_size(input));
  if (say)
    fmt::print("{}: {} × {}, {} nonzeros, {} read in {} ({}/s)\n", input, human_count(matrix->rows),
               human_count(matrix->cols), human_count(matrix->nnz()), human_bytes(bytes), human_seconds(seconds),
               human_bytes(bytes / seconds));
  return {make_memory_source(std::move(matrix), input), nullptr, true};
}

}  // namespace shardmat::tools
