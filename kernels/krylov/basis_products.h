// Products of a vector with all vectors of a basis, in one column on a GPU (kernels/cuda/basis_products.cu). Steps that sum
// so (gmres_steps.h) have a function basis_products(), and krylov_kernels.h then runs this instead of their entries.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

namespace shardmat::krylov {

/// to[i] = v_i·w, and to[count] = w·w with `self`. If there are factors h, w −= Σ h_i·v_i comes first. Sums are in f64, in
/// an order that depends on the number of rows and vectors and on the kind of GPU. REQUIRES: w and each v_i begin at
/// multiples of 16 bytes; 1 ≤ count, and at most 32 products with w·w.
template <class T>
struct BasisProducts {
  const T* v;
  std::int64_t apart;  ///< values from one vector to the next
  int count;
  bool self;
  T* w;
  const double* h;  ///< a factor for each vector; or null: w stays as it is
  double* to;
  bool backward;                   ///< from the last row to the first, as the rows at the end are in the cache
  const double* wanted = nullptr;  ///< in device memory; 0: nothing is done
};

/// `partial`: room for `room` partial sums; *done: 0 before and after.
template <class T>
void run_basis_products(const BasisProducts<T>& products, std::int64_t rows, double* partial, std::int64_t room,
                        unsigned* done, Stream& stream);

}  // namespace shardmat::krylov
