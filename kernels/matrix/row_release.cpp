#include "kernels/matrix/row_release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace shardmat {
namespace {

constexpr std::uintptr_t kBlock = std::uintptr_t{2} << 20;

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Gives back the whole pages between two addresses. Returns their bytes; 0 if the system keeps them, as it does with
/// locked memory.
std::int64_t give_back(std::uintptr_t begin, std::uintptr_t end) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page, end = end / page * page;
  if (begin >= end || ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) != 0) return 0;
  return static_cast<std::int64_t>(end - begin);
}

}  // namespace

RowRelease::Array::Array(const void* begin, std::size_t bytes) : begin_(address(begin)), end_(begin_ + bytes) {
  if (bytes == 0) return;
  const std::uintptr_t first = begin_ / kBlock, blocks = (end_ - 1) / kBlock - first + 1;
  left_ = std::make_unique<std::atomic<std::size_t>[]>(blocks);
  for (std::uintptr_t block = 0; block < blocks; ++block)
    left_[block] = std::min(end_, (first + block + 1) * kBlock) - std::max(begin_, (first + block) * kBlock);
}

std::int64_t RowRelease::Array::release(const void* from, std::size_t bytes) {
  std::int64_t given_back = 0;
  const std::uintptr_t last = address(from) + bytes;
  for (std::uintptr_t at = address(from); at < last;) {
    const std::uintptr_t block = at / kBlock, next = std::min(last, (block + 1) * kBlock);
    std::atomic<std::size_t>& left = left_[block - begin_ / kBlock];
    // The thread that reads a block last gives it back, after all reads of other threads.
    if (left.fetch_sub(next - at, std::memory_order_acq_rel) == next - at)
      given_back += give_back(std::max(begin_, block * kBlock), std::min(end_, (block + 1) * kBlock));
    at = next;
  }
  return given_back;
}

RowRelease::RowRelease(const CsrView& matrix)
    : columns_(matrix.col_idx.visit([](const auto& columns) { return Array(columns.data(), columns.size_bytes()); })),
      values_(matrix.values.visit([](const auto& values) { return Array(values.data(), values.size_bytes()); })) {}

void RowRelease::release(const CsrView& rows, std::int64_t first, std::int64_t last) {
  if (first >= last) return;
  if (!began()) began_.store(true, std::memory_order_relaxed);
  const auto of = [&](Array& array, const auto& numbers) {
    numbers.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)).visit([&](const auto& some) {
      if (const std::int64_t bytes = array.release(some.data(), some.size_bytes()); bytes > 0)
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
    });
  };
  of(columns_, rows.col_idx);
  of(values_, rows.values);
}

}  // namespace shardmat
