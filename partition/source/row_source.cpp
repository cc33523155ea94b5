#include "partition/source/row_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

namespace shardmat {

std::string_view name(RowOrder order) {
  switch (order) {
    case RowOrder::by_length:
      return "length";
    case RowOrder::rcm:
      return "rcm";
    case RowOrder::graph:
      return "graph";
    default:
      return "source";
  }
}

std::string_view title(RowOrder order) {
  switch (order) {
    case RowOrder::by_length:
      return "sorted by length";
    case RowOrder::rcm:
      return "reverse Cuthill-McKee";
    case RowOrder::graph:
      return "by parts of the graph";
    default:
      return "original";
  }
}

void RowSource::visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const {
  const HostCsr rows = read_rows(begin, end);
  use(rows.view());
}

void RowSource::read_rows_into(std::int64_t begin, const RowTarget& target, const Progress& progress) const {
  const std::int64_t all = std::reduce(target.lengths.begin(), target.lengths.end());
  std::int64_t done = 0;
  for_each_row_slice(*this, begin, begin + std::ssize(target.lengths), [&](std::int64_t first, const CsrView& slice) {
    put_rows(slice, first - begin, begin, target, name());
    report(progress, "loading", done += slice.nnz(), all);
  });
}

HostVector<std::int64_t> RowSource::permutation(std::int64_t begin, std::int64_t end) const {
  HostVector<std::int64_t> identity(static_cast<std::size_t>(end - begin));
  std::iota(identity.begin(), identity.end(), begin);
  return identity;
}

HostVector<std::int64_t> read_row_pointers(const RowSource& source, const Progress& progress) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 58;
  const std::int64_t rows = source.rows();
  require_host_memory(rows > kMostRows ? std::numeric_limits<std::int64_t>::max() : 8 * (rows + 1),
                      fmt::format("{}: counting the nonzeros of {} rows", source.name(), rows).c_str());
  HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(rows) + 1);
  row_ptr[0] = 0;
  for (std::int64_t begin = 0; begin < rows; begin += kSliceEntries) {
    const std::int64_t end = std::min(rows, begin + kSliceEntries);
    const auto lengths = source.row_lengths(begin, end);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t length = lengths[static_cast<std::size_t>(i - begin)];
      if (length < 0 || length > source.cols())
        throw Error(ErrorKind::input, fmt::format("{}: row {} has {} nonzeros in a matrix with {} columns", source.name(), i,
                                                  length, source.cols()));
      row_ptr[static_cast<std::size_t>(i) + 1] = row_ptr[static_cast<std::size_t>(i)] + length;
    }
    report(progress, "counting", end, rows);
  }
  return row_ptr;
}

void for_each_row_slice(const RowSource& source, std::int64_t begin, std::int64_t end,
                        const std::function<void(std::int64_t, const CsrView&)>& use, std::int64_t multiple) {
  while (begin < end) {
    const auto lengths = source.row_lengths(begin, std::min(end, begin + kSliceEntries / multiple * multiple));
    const auto rows = static_cast<std::int64_t>(lengths.size());
    for (std::int64_t from = 0, to = 0; from < rows; from = to) {
      std::int64_t entries = 0;
      do entries += lengths[static_cast<std::size_t>(to++)];
      while (to < rows && (entries + lengths[static_cast<std::size_t>(to)] <= kSliceEntries || to % multiple != 0));
      if (begin + to < end)
        if (const std::int64_t best = source.best_end(begin + from, begin + to) - begin; best % multiple == 0) to = best;
      source.visit_rows(begin + from, begin + to, [&](const CsrView& view) { use(begin + from, view); });
    }
    begin += rows;
  }
}

namespace {

class MemorySource final : public RowSource {
 public:
  MemorySource(std::shared_ptr<const HostCsr> matrix, std::string name, std::shared_ptr<const UnknownList> unknowns)
      : matrix_(std::move(matrix)), name_(std::move(name)), unknowns_(std::move(unknowns)) {
    if (unknowns_ && std::ssize(*unknowns_) != matrix_->rows)
      throw Error(ErrorKind::internal, fmt::format("{}: {} unknowns of {} rows", name_, unknowns_->size(), matrix_->rows));
  }

  std::int64_t rows() const override { return matrix_->rows; }
  std::int64_t cols() const override { return matrix_->cols; }
  std::string name() const override { return name_; }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    check(begin, end);
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) lengths[static_cast<std::size_t>(i - begin)] = start(i + 1) - start(i);
    return lengths;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    check(begin, end);
    HostCsr part;
    part.rows = end - begin;
    part.cols = matrix_->cols;
    part.row_ptr.resize(static_cast<std::size_t>(part.rows + 1));
    for (std::int64_t i = begin; i <= end; ++i) part.row_ptr[static_cast<std::size_t>(i - begin)] = start(i) - start(begin);
    const std::int64_t first = start(begin);
    part.col_idx.resize(static_cast<std::size_t>(part.nnz()));
    part.values.resize(static_cast<std::size_t>(part.nnz()));
    parallel_ranges(part.nnz(), 1 << 20, [&](std::int64_t lo, std::int64_t hi) {
      std::copy(matrix_->col_idx.begin() + first + lo, matrix_->col_idx.begin() + first + hi, part.col_idx.begin() + lo);
      std::copy(matrix_->values.begin() + first + lo, matrix_->values.begin() + first + hi, part.values.begin() + lo);
    });
    return part;
  }

  void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const override {
    check(begin, end);
    use(matrix_->view().rows_between(begin, end));
  }

  std::shared_ptr<const UnknownList> unknowns() const override { return unknowns_; }

 private:
  std::int64_t start(std::int64_t row) const { return matrix_->row_ptr[static_cast<std::size_t>(row)]; }
  void check(std::int64_t begin, std::int64_t end) const {
    if (begin < 0 || begin > end || end > matrix_->rows)
      throw Error(ErrorKind::internal,
                  fmt::format("rows [{}, {}) asked of a matrix with {} rows", begin, end, matrix_->rows));
  }

  std::shared_ptr<const HostCsr> matrix_;
  std::string name_;
  std::shared_ptr<const UnknownList> unknowns_;
};

}  // namespace

std::unique_ptr<RowSource> make_memory_source(std::shared_ptr<const HostCsr> matrix, std::string name,
                                              std::shared_ptr<const UnknownList> unknowns) {
  return std::make_unique<MemorySource>(std::move(matrix), std::move(name), std::move(unknowns));
}

}  // namespace shardmat
