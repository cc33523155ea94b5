// CUDA products of parts (ELL, COO) that several formats consist of. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/formats/coo.h"
#include "kernels/formats/ell.h"
#include "kernels/typed_plan.h"

namespace shardmat::cuda {

/// y = alpha·A·x + beta·y for an ELL part of `rows` rows.
template <class T>
void multiply_ell(std::int64_t rows, const EllArrays& a, int block_size, const Operands<T>& v, Stream& stream);

/// y += alpha·A·x with atomic additions, so the order of the sums changes from run to run.
template <class T>
void add_coo(const CooEntries& a, int block_size, const Operands<T>& v, Stream& stream);

}  // namespace shardmat::cuda
