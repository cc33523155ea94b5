// Random entries for a dense operand of any size, of which the host keeps a table only.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/base/types.h"

namespace shardmat::tools {

class RepeatedTable {
 public:
  /// Values of `type`, uniform in [-1, 1), the same in every run.
  explicit RepeatedTable(ValueType type);

  /// Entry i of the operand, rounded to the type.
  double at(std::int64_t i) const { return values_[static_cast<std::size_t>(i) % values_.size()]; }
  /// Fills the buffer with the table, over and over.
  void fill(const Buffer& buffer, Stream& stream) const;

 private:
  ValueType type_;
  std::vector<double> values_;
};

}  // namespace shardmat::tools
