#include "runtime/service/engine/density.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/csr.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat::service {
namespace {

/// The cell of each index; of -1, which has no entry, the first one.
std::vector<std::uint8_t> cells_of(std::span<const std::int64_t> indices, std::int64_t size, std::int64_t cells) {
  static_assert(kMostCells <= 256);
  std::vector<std::uint8_t> all(indices.size());
  parallel_ranges(std::ssize(indices), kWorkOfAThread, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      all[i] = static_cast<std::uint8_t>(cell_of(std::max<std::int64_t>(indices[i], 0), size, cells));
  });
  return all;
}

void add_rows(const CsrView& csr, std::int64_t begin, std::int64_t end, std::span<const std::uint8_t> row_cells,
              std::span<const std::uint8_t> col_cells, std::int64_t width, std::vector<std::uint64_t>& counts) {
  csr.col_idx.visit([&](const auto columns) {
    const std::int64_t base = csr.row_ptr[0];
    for (std::int64_t row = begin; row < end; ++row) {
      const auto i = static_cast<std::size_t>(row);
      std::uint64_t* const cells = counts.data() + std::int64_t{row_cells[i]} * width;
      for (std::int64_t at = csr.row_ptr[i] - base; at < csr.row_ptr[i + 1] - base; ++at)
        ++cells[col_cells[static_cast<std::size_t>(columns[static_cast<std::size_t>(at)])]];
    }
  });
}

}  // namespace

Density count_density(const DistributedMatrix& matrix) {
  const HostVector<std::int64_t> ids = matrix.column_ids();
  return matrix.context().communicator().run_agreed([&] {
    Density density;
    density.height = std::min(kMostCells, matrix.rows()), density.width = std::min(kMostCells, matrix.cols());
    density.counts.resize(static_cast<std::size_t>(density.height * density.width));
    const CsrView csr = matrix.host_pattern();
    const auto row_cells = cells_of(matrix.y_rows()->ids(), matrix.rows(), density.height),
               col_cells = cells_of(ids, matrix.cols(), density.width);
    std::mutex adding;
    parallel_ranges(csr.rows, grain_of(csr.rows, csr.nnz()), [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::uint64_t> own(density.counts.size());
      add_rows(csr, begin, end, row_cells, col_cells, density.width, own);
      const std::lock_guard lock(adding);
      std::transform(own.begin(), own.end(), density.counts.begin(), density.counts.begin(), std::plus<>());
    });
    return density;
  });
}

}  // namespace shardmat::service
