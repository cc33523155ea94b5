#include "partition/generators/generated_source.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat {
namespace {

constexpr std::int64_t kLarge = 1 << 24;  // nonzeros worth asking the system for its memory

}  // namespace

void GeneratedSource::check(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > rows_)
    throw Error(ErrorKind::internal, fmt::format("rows [{}, {}) asked of {} with {} rows", begin, end, name_, rows_));
}

HostVector<std::int64_t> GeneratedSource::row_lengths(std::int64_t begin, std::int64_t end) const {
  check(begin, end);
  HostVector<std::int64_t> lengths(static_cast<std::size_t>(end - begin));
  count(begin, end, lengths.data());
  return lengths;
}

HostCsr GeneratedSource::read_rows(std::int64_t begin, std::int64_t end) const {
  check(begin, end);
  HostCsr part;
  part.rows = end - begin;
  part.cols = cols_;
  part.row_ptr.resize(static_cast<std::size_t>(part.rows + 1));
  part.row_ptr[0] = 0;
  lay_out(begin, end, part.row_ptr.data() + 1);
  for (std::size_t i = 1; i < part.row_ptr.size(); ++i) part.row_ptr[i] += part.row_ptr[i - 1];
  if (part.nnz() > kLarge) require_host_memory(16 * part.nnz(), name_.c_str());
  part.col_idx.resize(static_cast<std::size_t>(part.nnz()));
  part.values.resize(static_cast<std::size_t>(part.nnz()));
  fill(begin, end, part);
  return part;
}

}  // namespace shardmat
