// The list of writers.
#include "partition/writers/writer.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/files/atomic_files.h"
#include "partition/source/permuted_source.h"
#include "partition/source/unknowns.h"
#include "partition/writers/writer_list.h"

namespace shardmat {
namespace {

const Writer kWriters[] = {
    {"matrix-market", ".mtx", write_matrix_market},
    {"scipy-npz", ".npz", write_npz},
    {"petsc", ".petsc", write_petsc},
    {"matlab", ".mat", write_matlab},
    {"hypre-ij", ".00000", nullptr, write_hypre_text},
    {"hypre-ij", ".00000.bin", nullptr, write_hypre_binary},
};

}  // namespace

std::span<const Writer> writers() { return kWriters; }

const Writer& find_writer(const std::filesystem::path& path) {
  std::vector<std::string> known{".h5"};  // of shard files, which others write
  for (const Writer& writer : kWriters) {
    if (path.filename().string().ends_with(writer.suffix) && path.filename() != writer.suffix) return writer;
    known.emplace_back(writer.suffix);
  }
  throw Error(ErrorKind::usage, fmt::format("cannot write {}: its name must end in {}", path.string(), join_choices(known)));
}

void write_matrix(const std::filesystem::path& path, const RowSource& source, const Progress& progress, std::int64_t files) {
  const Writer& writer = find_writer(path);
  std::optional<AtomicFile> list;
  if (const auto unknowns = source.unknowns()) {
    list.emplace(unknowns_file(path));
    write_unknowns(*list, *unknowns);
  }
  AtomicFiles out(path, files, source.rows());
  HostVector<std::int64_t> row_ptr = read_row_pointers(source);
  std::unique_ptr<RowSource> original;
  if (source.permuted()) {
    original = make_original_order_source(source, row_ptr);
    row_ptr = read_row_pointers(*original);
  }
  const RowSource& rows = original ? *original : source;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    if (writer.write_part == nullptr) writer.write(out[i], rows, row_ptr, progress);
    else
      writer.write_part(out[i], rows, row_ptr,
                        {begin_of_part(rows.rows(), i, files), begin_of_part(rows.rows(), i + 1, files),
                         begin_of_part(rows.cols(), i, files), begin_of_part(rows.cols(), i + 1, files)},
                        progress);
  }
  if (list) list->commit();
  out.commit();
}

}  // namespace shardmat
