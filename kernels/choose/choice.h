// What is asked of a tuner, and what it tells about its choice.
// Ownership: values. Nothing is collective.
// Threads: values, which a program copies as it likes; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/base/types.h"

namespace shardmat {

/// True if measuring a few candidates pays for this number of expected products. On a GPU it always does: copying the matrix
/// to the device takes longer. On the host a conversion takes as long as some fifty products.
constexpr bool pays_to_measure(Backend backend, double products) { return backend == Backend::cuda || products >= 300; }

/// True if a conversion on a GPU that takes as long as some hundred products pays for this number of expected products.
constexpr bool are_many(double products) { return products >= 1000; }

/// Which entries of a matrix are stored.
enum class StoredEntries {
  all,
  half,  ///< one triangle: of two equal entries a_ij and a_ji, one is stored
};

struct PlanRequest {
  std::string kernel = "auto";  ///< a name in the registry, or "auto"
  std::string policy;           ///< "name=value,…" replaces defaults of the kernel; needs a named kernel
  bool tune = false;            ///< measure every kernel, layout and policy that the request allows
  bool measure = true;          ///< auto may measure the model's best candidates (pays_to_measure()); false: take its first
  bool reproducible = false;    ///< only plans whose results are bit-identical from run to run
  bool same_bits = false;  ///< a column has the same bits in products of any number of right-hand sides (ordered_format.h)
  double products = 2000;  ///< expected number of products; they must save the time that making a plan takes
  StoredEntries storage = StoredEntries::all;  ///< half: only for symmetric matrices, on the host
  double budget_seconds = 0;  ///< measuring starts no new candidate after this long; 0: some 150 products, tune: 5 s
};

enum class Decision { asked, only, model, measured, remembered };  ///< asked: by the caller; remembered: of an earlier run
std::string name(Decision decision);

/// The model's prediction for one candidate.
struct Prediction {
  std::string kernel;
  std::string policy;  ///< tunables of layout and kernel
  double bytes = 0;    ///< a copy of this many bytes takes as long as one product (cost_model.h)
};

/// One measured candidate.
struct Measurement {
  std::string kernel;
  std::string policy;
  double seconds = 0;  ///< of one product, see seconds_to_compare()
};

/// How a plan was chosen.
struct Choice {
  Decision decision = Decision::asked;
  std::string why;  ///< one line for the report
};
/// Explains, for the report, why the chosen candidate won. `seconds`: its measured time, if measured; `named`: the kernel
/// was named in the request; `unmeasured`: the explanation if nothing was measured. Sorts the measurements, fastest first.
Choice describe_choice(std::vector<Measurement>& measurements, double seconds, bool named, std::size_t candidates,
                       const char* unmeasured);

}  // namespace shardmat
