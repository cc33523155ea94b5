// Matrix Market text: coordinate real general.
#include <fmt/format.h>

#include "partition/files/output_file.h"
#include "partition/writers/text_entries.h"
#include "partition/writers/writer_list.h"

namespace shardmat {

void write_matrix_market(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
                         const Progress& progress) {
  OutputFile text(file);
  const std::int64_t nnz = row_ptr.back();
  text.append(fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", source.rows(), source.cols(), nnz));
  append_text_entries(text, source, row_ptr, 0, source.rows(), 1, progress);
  text.close();
}

}  // namespace shardmat
