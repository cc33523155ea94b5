#include "partition/hdf5/shard_file_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "partition/files/checksum.h"

namespace shardmat::shard_format {

namespace {

/// The checksum of the numbers as they would be in the wider type.
template <class Wide, class Narrow>
std::uint64_t checksum_of(const NumberView<Wide, Narrow>& numbers) {
  if (!numbers.is_narrow()) return xxh64(numbers.data().wide(), numbers.size() * sizeof(Wide));
  constexpr std::size_t kPiece = 512;
  Wide wide[kPiece];
  Xxh64 hash;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kPiece) {
    const auto piece = numbers.subspan(begin, std::min(kPiece, numbers.size() - begin));
    std::copy(piece.begin(), piece.end(), wide);
    hash.add(wide, piece.size() * sizeof(Wide));
  }
  return hash.digest();
}

}  // namespace

BlockChecksums checksums(std::span<const std::int64_t> pointers, const ColumnView& columns, const ValueView& values) {
  return {xxh64(pointers.data(), pointers.size_bytes()), checksum_of(columns), checksum_of(values)};
}

std::uint64_t checksum(std::span<const std::int64_t> numbers) { return xxh64(numbers.data(), numbers.size_bytes()); }

std::uint64_t fingerprint(std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::uint64_t permutation_checksum,
                          std::span<const BlockChecksums> blocks) {
  const std::int64_t sizes[] = {rows, cols, nnz};
  const std::uint64_t parts[] = {checksum(sizes), permutation_checksum, xxh64(blocks.data(), blocks.size_bytes())};
  return xxh64(parts, sizeof parts);
}

std::vector<std::int64_t> block_rows(std::span<const std::int64_t> row_ptr) {
  const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  std::vector<std::int64_t> starts{0};
  while (starts.back() < rows) {
    const std::int64_t begin = starts.back(), most = std::min(rows, begin + kBlockEntries);
    const auto first = row_ptr.begin();
    const std::int64_t end = std::upper_bound(first + begin, first + most + 1, first[begin] + kBlockEntries) - first - 1;
    starts.push_back(std::max(begin + 1, end));
  }
  return starts;
}

std::string partition_group(const std::string& method, std::int64_t parts) {
  return fmt::format("{}/{}-{}", kPartitions, method, parts);
}

}  // namespace shardmat::shard_format
