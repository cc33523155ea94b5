// The transposed product that goes by a map of the columns: one implementation for each backend. Internal to kernels/.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/host_device.h"
#include "kernels/choose/column_entries.h"
#include "kernels/transpose_plan.h"

namespace shardmat {

/// The values of a storage by their places: those of the first array, then those of the second.
template <class T>
struct PlacedValues {
  const T *first, *second;
  std::uint32_t in_first;

  explicit PlacedValues(const Storage& storage) {
    const auto arrays = storage.value_arrays();  // no format has more than two
    first = arrays.at(0)->template as<T>();
    in_first = static_cast<std::uint32_t>(arrays.at(0)->bytes() / sizeof(T));
    second = arrays.size() > 1 ? arrays.at(1)->template as<T>() : nullptr;
  }
  SHARDMAT_HOST_DEVICE T operator[](std::uint32_t place) const {
    return place < in_first ? first[place] : second[place - in_first];
  }
};

std::unique_ptr<TransposePlan> make_gather_columns_host(std::shared_ptr<const Storage> storage,
                                                        std::shared_ptr<const ColumnEntries> entries,
                                                        const TransposeShape& shape);
std::unique_ptr<TransposePlan> make_gather_columns_cuda(std::shared_ptr<const Storage> storage,
                                                        std::shared_ptr<const ColumnEntries> entries,
                                                        const TransposeShape& shape);

}  // namespace shardmat
