#include "kernels/cost_model.h"

#include <algorithm>
#include <memory>

#include "kernels/matrix/locality.h"

namespace shardmat {
namespace {

constexpr double kSector = 32;                 // bytes of x that one gather pulls from L2
constexpr double kCopyOverL2 = 4.2 / 5.5;      // rates
constexpr double kBytesOfSerialNonzero = 3e5;  // copied while a thread takes one more nonzero of its row: 70 ns
constexpr double kMostUneven = 4;

}  // namespace

double effective_bytes(ConversionInput& input, double stored_bytes, const KernelCost& cost) {
  const RowStatistics& rows = input.rows();
  const double value = static_cast<double>(input.value_bytes());
  const double streamed = stored_bytes + value * static_cast<double>(input.matrix().rows + input.matrix().cols);
  const double spread = rows.mean_row > 0 ? std::min(rows.stddev_row / rows.mean_row, kMostUneven) : 0;
  const double streams = streamed / cost.efficiency * (1 + cost.unevenness * spread);
  const double gathers = kSector * kCopyOverL2 * static_cast<double>(rows.nnz) / sampled_locality(input);
  const double longest = input.stream().device().backend == Backend::host || cost.threads_on_row == 0
                             ? 0
                             : kBytesOfSerialNonzero * static_cast<double>(rows.max_row) / cost.threads_on_row;
  return std::max({streams, gathers, longest});
}

double sampled_locality(ConversionInput& input) {
  return input.remember<double>("sampled locality", [&] {
    constexpr std::int64_t kPieces = 64, kEntries = 1024;
    const ColumnView columns = input.matrix().col_idx;
    const auto nnz = static_cast<std::int64_t>(columns.size());
    ColumnLocality locality(line_bits(input.type()));
    for (std::int64_t piece = 0; piece < kPieces; ++piece) {
      const std::int64_t begin = nnz / kPieces * piece, end = std::min(begin + kEntries, nnz / kPieces * (piece + 1));
      locality.add(columns.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    }
    return std::max(1.0, locality.mean());
  });
}

}  // namespace shardmat
