#include "kernels/batched/descriptor.h"

#include <algorithm>

namespace shardmat::batched {
namespace {

/// The difference of all neighbours; 0 if they differ.
std::int32_t step_of(const std::vector<std::int32_t>& first) {
  const std::int32_t step = first.size() < 2 ? 0 : first[1] - first[0];
  for (std::size_t i = 1; i < first.size(); ++i)
    if (first[i] - first[i - 1] != step) return 0;
  return step;
}

}  // namespace

RowShifts::RowShifts(std::vector<std::int32_t>& descriptor, const BatchOffsets& at)
    : count_(static_cast<std::int32_t>(at.count())), list_(descriptor.size()), rows_(static_cast<std::int32_t>(at.rows())) {
  if (const std::int32_t rows = step_of(at.first_row), cols = step_of(at.first_col); rows > 0 && cols > 0) {
    // T. Granlund and P. L. Montgomery, "Division by invariant integers using multiplication", PLDI 1994: exact below 2^31.
    int log = 0;
    while ((std::int64_t{1} << log) < rows) ++log;
    inverse_shift_ = 31 + log;
    inverse_ =
        ((std::uint64_t{1} << inverse_shift_) + static_cast<std::uint64_t>(rows) - 1) / static_cast<std::uint64_t>(rows);
    cols_ = cols;
    return;
  }
  if (rows_ == 0) return;
  const auto append = [&](const std::vector<std::int32_t>& words) {
    const auto position = static_cast<std::int32_t>(descriptor.size());
    descriptor.insert(descriptor.end(), words.begin(), words.end());
    return position;
  };
  first_row_ = append(at.first_row);
  first_col_ = at.first_col == at.first_row ? first_row_ : append(at.first_col);
  // No more stretches than matrices.
  while (((rows_ - 1) >> stretch_log_) >= count_) ++stretch_log_;
  const std::size_t stretches = static_cast<std::size_t>((rows_ - 1) >> stretch_log_) + 1;
  if (travels_with_launch(descriptor.size() + stretches + 1)) {
    std::vector<std::int32_t> matrices;
    std::int32_t matrix = 0;
    for (std::size_t i = 0; i < stretches; ++i) {
      const auto row = static_cast<std::int32_t>(i << stretch_log_);
      while (matrix + 1 < count_ && at.first_row[static_cast<std::size_t>(matrix) + 1] <= row) ++matrix;
      matrices.push_back(matrix);
    }
    matrices.push_back(count_ - 1);
    stretches_ = append(matrices);
  }
  list_ = descriptor.size();
  listed_ = rows_;
}

}  // namespace shardmat::batched
