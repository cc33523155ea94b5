// The plans of a transposed product for the rows of a rank, and how the product is made of them.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/transpose_plan.h"
#include "runtime/matrix/product.h"

namespace shardmat {

class ColumnMap;
class MatrixRows;

/// A plan for the rows of a rank from first_row on.
struct RowTransposePlan {
  std::int64_t first_row = 0;
  std::unique_ptr<TransposePlan> plan;
};

/// The product of a matrix that is not in symmetric storage. REQUIRES: a product was made. Collective; the same error on all
/// ranks.
std::unique_ptr<TransposedProduct> plan_transposed_product(const DistributedMatrix& matrix, MatrixRows& rows,
                                                           std::shared_ptr<const ColumnMap> map, std::int64_t columns);

}  // namespace shardmat
