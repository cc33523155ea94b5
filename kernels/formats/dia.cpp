#include "kernels/formats/dia.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "kernels/formats/limits.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// Bit column - row + rows - 1 is set for every nonzero.
struct OccupiedDiagonals {
  HostVector<std::uint64_t> bits;
  std::int64_t count = 0;
};

OccupiedDiagonals find_diagonals(const CsrView& m) {
  OccupiedDiagonals occupied;
  occupied.bits.resize(static_cast<std::size_t>((m.rows + m.cols + 63) / 64));
  std::fill(occupied.bits.begin(), occupied.bits.end(), 0);
  const std::int64_t* row_ptr = m.row_ptr.data();
  const ColumnPointer columns = m.col_idx.data();
  parallel_ranges(m.rows, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = row_ptr[i] - row_ptr[0]; k < row_ptr[i + 1] - row_ptr[0]; ++k) {
        const auto diagonal = static_cast<std::uint64_t>(columns[k] - i + m.rows - 1);
        const std::atomic_ref word(occupied.bits[diagonal / 64]);
        const std::uint64_t bit = std::uint64_t{1} << diagonal % 64;
        // Read first: almost all nonzeros find their diagonal known, and threads would fight for the word.
        if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
      }
  });
  for (const std::uint64_t word : occupied.bits) occupied.count += std::popcount(word);
  return occupied;
}

const OccupiedDiagonals& diagonals_of(ConversionInput& input) {
  return input.remember<OccupiedDiagonals>("dia", [&] { return find_diagonals(input.matrix()); });
}

HostVector<std::int64_t> offsets_of(ConversionInput& input) {
  const OccupiedDiagonals& occupied = diagonals_of(input);
  HostVector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(occupied.count));
  for (std::size_t word = 0; word < occupied.bits.size(); ++word)
    for (std::uint64_t bits = occupied.bits[word]; bits != 0; bits &= bits - 1)
      offsets.push_back(static_cast<std::int64_t>(64 * word) + std::countr_zero(bits) - input.matrix().rows + 1);
  return offsets;
}

void put_values(const DiaStorage& dia, const HostVector<std::int64_t>& offsets, ConversionInput& input) {
  const CsrView& m = input.ascending();
  const std::int64_t* row_ptr = m.row_ptr.data();
  HostVector<std::int64_t> starts(offsets.size() + 1);
  for (std::size_t d = 0; d < starts.size(); ++d) starts[d] = static_cast<std::int64_t>(d) * m.rows;
  const auto value = [&](std::int64_t d, std::int64_t i) {
    const std::int64_t column = i + offsets[static_cast<std::size_t>(d)];
    const ColumnPointer begin = m.col_idx.data() + (row_ptr[i] - row_ptr[0]);
    const ColumnPointer end = m.col_idx.data() + (row_ptr[i + 1] - row_ptr[0]);
    const ColumnPointer found = std::lower_bound(begin, end, column);
    return found != end && *found == column ? m.values[static_cast<std::size_t>(found - m.col_idx.data())] : 0;
  };
  dispatch(dia.type, [&](auto tag) { fill_runs<typename decltype(tag)::type>(dia.values, starts, input.stream(), value); });
}

}  // namespace

std::int64_t dia_bytes(ConversionInput& input, const Policy&) {
  const std::int64_t count = diagonals_of(input).count;
  return 8 * count + capped_product(capped_product(input.matrix().rows, count), input.value_bytes());
}

std::shared_ptr<Storage> convert_dia(ConversionInput& input, const Policy& layout) {
  auto dia = std::make_shared<DiaStorage>();
  dia->describe(input, dia_bytes(input, layout));
  const HostVector<std::int64_t> offsets = offsets_of(input);
  dia->diagonals = static_cast<std::int64_t>(offsets.size());
  dia->offsets = upload<std::int64_t>(offsets, input.stream());
  dia->values = Buffer(dia->device, offsets.size() * static_cast<std::size_t>(dia->rows) * size_of(dia->type));
  put_values(*dia, offsets, input);
  return dia;
}

void update_dia(Storage& storage, ConversionInput& input) {
  put_values(static_cast<DiaStorage&>(storage), offsets_of(input), input);
}

}  // namespace shardmat
