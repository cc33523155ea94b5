// Host products of parts (ELL, COO) that several formats consist of. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/formats/coo.h"
#include "kernels/formats/ell.h"
#include "kernels/typed_plan.h"

namespace shardmat {

/// y = alpha·A·x + beta·y for an ELL part of `rows` rows.
template <class T>
void multiply_ell_host(std::int64_t rows, const EllArrays& a, const Operands<T>& v);

/// Cuts entries into parts of about equal size that share no row, so that threads may add them to y in any order.
std::vector<std::int64_t> cut_between_rows(const CooEntries& a);
/// y += alpha·A·x with cuts = cut_between_rows(a).
template <class T>
void add_coo_host(const CooEntries& a, const std::vector<std::int64_t>& cuts, const Operands<T>& v);

}  // namespace shardmat
