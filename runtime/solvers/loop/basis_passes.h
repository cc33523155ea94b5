// Passes over the vectors of a basis, as many at a time as the backend reads well together: products of all of them with a
// vector, and linear combinations. The steps are in kernels/krylov/gmres_steps.h.
//
// Threads: as krylov::Passes. All functions work in stream order, on this rank's rows alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/krylov/gmres_steps.h"

namespace shardmat {

template <class T>
class BasisPasses {
 public:
  /// Vectors of `rows` rows with the columns of `passes`, row-major, each `apart` values after the one before.
  BasisPasses(const krylov::Passes& passes, Device device, std::int64_t rows, std::int64_t apart)
      : passes_(passes),
        rows_(rows),
        apart_(apart),
        widest_(device.backend == Backend::host ? krylov::kBasisWidthOnHost : krylov::kBasisWidthOnGpu) {}

  /// The most vectors of one pass.
  int widest() const { return widest_; }

  /// h_i = v_i·w for `count` vectors from v on, then h_count = w·w. A number for each column: h_i at h + i · columns.
  void dots(const T* v, std::int64_t count, T* w, double* h, Stream& stream) const {
    for (std::int64_t done = 0; done < count; done += widest_) {
      const int now = static_cast<int>(std::min<std::int64_t>(widest_, count - done));
      const bool self = done + now == count && now < widest_;
      with_width(now + (self ? 1 : 0), [&]<int W>(Width<W>) {
        run(krylov::GmresDots<T, W>{vectors<W>(v + done * apart_, now, nullptr), w, self, h + done * columns()}, stream);
      });
    }
    if (count % widest_ == 0) run(krylov::GmresSquare<T>{w, h + count * columns()}, stream);
  }

  /// w += sign · Σ h_i·v_i, times the diagonal `scale` of a preconditioner unless it is null.
  void add(const T* v, std::int64_t count, double sign, const double* h, const T* scale, T* w, Stream& stream) const {
    for (std::int64_t done = 0; done < count; done += widest_) {
      const int now = static_cast<int>(std::min<std::int64_t>(widest_, count - done));
      with_width(now, [&]<int W>(Width<W>) {
        run(krylov::GmresAdd<T, W>{vectors<W>(v + done * apart_, now, h + done * columns()), w, sign, scale}, stream);
      });
    }
  }

  template <int W>
  using Width = std::integral_constant<int, W>;
  /// Calls run(Width<W>) with the least W of at least `count`.
  template <class Run>
  static void with_width(int count, const Run& run) {
    if (count <= 8) return run(Width<8>{});
    if (count <= 16) return run(Width<16>{});
    run(Width<32>{});
  }
  /// For a step of W vectors.
  template <int W>
  krylov::GmresBasis<T, W> vectors(const T* first, int count, const double* factors) const {
    return {first, apart_, count, factors, columns()};
  }

 private:
  int columns() const { return passes_.columns(); }
  template <class Step>
  void run(const Step& step, Stream& stream) const {
    passes_.run(step, rows_, stream);
  }

  const krylov::Passes& passes_;
  std::int64_t rows_, apart_;
  int widest_;
};

}  // namespace shardmat
