// Memory of a method: vectors of this rank's rows and scalars of each column.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/types.h"
#include "kernels/krylov/residual.h"
#include "runtime/solvers/loop/method.h"

namespace shardmat {

class MethodMemory {
 public:
  /// Room for some vectors, and for some scalars a column. Checks memory first. Collective; the same error on all ranks.
  MethodMemory(const MethodInputs& inputs, int vectors, std::int64_t scalars);

  template <class T>
  T* vector(int i) const {
    return reinterpret_cast<T*>(vectors_.as<char>() + static_cast<std::size_t>(i) * apart_);
  }
  /// Scalar i of each column; scalars with consecutive numbers lie one after another.
  double* scalar(std::int64_t i) const { return scalars_.as<double>() + i * columns_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(vectors_.bytes() + scalars_.bytes()); }

 private:
  int columns_;
  std::size_t apart_;
  Buffer vectors_, scalars_;
};

/// Makes a MethodOf<T, Scaling> as the type of the matrix and the kind of the preconditioner ask for.
template <template <class, krylov::Scaling> class MethodOf>
std::unique_ptr<Method> make_preconditioned(const MethodInputs& inputs) {
  return dispatch(inputs.type(), [&]<class Tag>(Tag) -> std::unique_ptr<Method> {
    using T = typename Tag::type;
    if (inputs.preconditioner.identity()) return std::make_unique<MethodOf<T, krylov::Scaling::none>>(inputs);
    if (inputs.preconditioner.is_diagonal()) return std::make_unique<MethodOf<T, krylov::Scaling::diagonal>>(inputs);
    return std::make_unique<MethodOf<T, krylov::Scaling::separate>>(inputs);
  });
}

}  // namespace shardmat
