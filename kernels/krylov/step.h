// Steps of Krylov methods: one pass over vectors that updates entries and sums dot products, with all scalars on the device.
// One source serves both backends: a step is a small struct whose functions run on the host and on a GPU.
//
//   struct Step {
//     static constexpr int kSums = 2;            // dot products that the pass sums: 0 … 3 or 8; on GPUs 16 and 32, too
//     struct Factors { bool works; T alpha; };   // what the scalars on the device give for a column
//     static constexpr bool kBackward = true;    // optional: from the last entry to the first
//     static constexpr bool kForGpus = true;     // optional: the host has no instance
//     static constexpr int kWork = 8;            // optional: by how much an item is more work than an entry of other steps
//     static constexpr int kAbreast = 2;         // optional: entries of one column that a thread of a GPU takes together,
//     bool aligned() const;                      //   if their vectors begin at multiples of kAbreast entries,
//     template <int N>                           //   as N calls of entry() for consecutive entries
//     Sums<kSums> entries(const Factors&, const Place&) const;
//     BasisProducts<T> basis_products() const;   // optional: what a GPU does for one column instead (basis_products.h)
//     Factors factors(int column) const;         // reads scalars; several threads call it
//     Sums<kSums> entry(const Factors&, const Place&) const;   // updates one entry; returns its share of the sums
//     void finish(int column, const Sums<kSums>&) const;       // writes scalars: once a column, after all of its entries
//   };
//
// factors() and entry() may read what finish() writes: when finish() of a column runs, nobody reads scalars of that column
// any more. If `works` is false, entry() is not called, and the sums are 0. Sums are formed in an order that depends on the
// number of entries and columns alone, so that results are the same bits in each run.
#pragma once

#include <cstdint>

#include "kernels/base/device.h"

#ifdef __CUDACC__
#define SHARDMAT_BOTH __host__ __device__ __forceinline__
#else
#define SHARDMAT_BOTH [[gnu::always_inline]] inline
#endif
#ifdef __CUDA_ARCH__
#define SHARDMAT_UNROLL _Pragma("unroll")
#define SHARDMAT_NO_UNROLL _Pragma("unroll 1")
#else
#define SHARDMAT_UNROLL
#define SHARDMAT_NO_UNROLL
#endif

namespace shardmat::krylov {

template <int N>
struct Sums {
  double of[N > 0 ? N : 1] = {};
};

/// Factors of a step that has none.
struct Works {
  bool works;
};

/// An entry of row-major vectors of several columns. An item is a row, or what a step makes of it (a block of rows).
struct Place {
  std::int64_t item;
  std::int64_t at;  ///< item · columns + column
  int column;
};

/// N entries of one column that lie side by side, loaded and stored at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Abreast {
  T of[N];

  SHARDMAT_BOTH static Abreast load(const T* from) {
    if constexpr (N == 1) return {{*from}};
    else return *reinterpret_cast<const Abreast*>(from);
  }
  SHARDMAT_BOTH void store(T* to) const {
    if constexpr (N == 1) *to = of[0];
    else *reinterpret_cast<Abreast*>(to) = *this;
  }
  /// Whether a vector may be read so; true for null.
  static bool is_aligned(const T* vector) { return reinterpret_cast<std::uintptr_t>(vector) % sizeof(Abreast) == 0; }
};

/// A pass that begins where the pass before it ended finds the vectors' entries there in the caches. A product goes forward.
template <class Step>
SHARDMAT_BOTH constexpr bool is_backward() {
  if constexpr (requires { Step::kBackward; }) return Step::kBackward;
  else return false;
}

template <class Step>
constexpr bool is_for_gpus() {
  if constexpr (requires { Step::kForGpus; }) return Step::kForGpus;
  else return false;
}

/// Entries that a thread of a GPU takes together where there is one column.
template <class Step>
constexpr int abreast() {
  if constexpr (requires { Step::kAbreast; }) return Step::kAbreast;
  else return 1;
}

/// Base of a step that only changes scalars: run it over 0 items.
struct NoEntries {
  static constexpr int kSums = 0;
  using Factors = Works;
  SHARDMAT_BOTH Factors factors(int) const { return {false}; }
  SHARDMAT_BOTH Sums<0> entry(const Factors&, const Place&) const { return {}; }
};

/// Runs steps for vectors of a number of columns. Used by one stream at a time.
class Passes {
 public:
  /// Throws Error(resources) if there is no memory for partial sums (64 kB a column).
  Passes(Device device, int columns);

  int columns() const { return columns_; }
  /// Runs `step` over `items` items, in stream order. Instances for the steps that all_steps.h lists.
  template <class Step>
  void run(const Step& step, std::int64_t items, Stream& stream) const;

 private:
  int columns_;
  Buffer partial_;
};

}  // namespace shardmat::krylov
