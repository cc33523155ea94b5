#include "runtime/solvers/multigrid/free_modes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/symmetric_eigen.h"
#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat::multigrid {
namespace {

/// Combinations of modes that are looked at: vᵀ·A·v is at most this share of the largest diagonal entry times vᵀ·v.
constexpr double kSoft = 1e-6;
/// Modes of a body depend on each other where less than this share is left.
constexpr double kDependent = 1e-10;

/// Of own nodes, then ghosts: the least number of a node that couplings connect with it; -1 for nodes without modes.
class Bodies {
 public:
  Bodies(const NodeRows& a, const Modes& modes) : parent_(at(a.cols->local_count())) {
    const std::int64_t own = a.count(), entries = std::int64_t{modes.size} * modes.count;
    HostVector<std::int64_t> label(at(own));
    for (std::int64_t i = 0; i < own; ++i) {
      const double* const of_node = modes.value.data() + i * entries;
      const bool moves = std::any_of(of_node, of_node + entries, [](double value) { return value != 0; });
      label[at(i)] = moves ? a.rows->global(i) : -1;
    }
    const HostVector<std::int64_t> of_ghosts = a.cols->fetch<std::int64_t>(label, 1);
    label.insert(label.end(), of_ghosts.begin(), of_ghosts.end());
    std::iota(parent_.begin(), parent_.end(), 0);
    for (std::int64_t i = 0; i < own; ++i) {
      std::int32_t p = root(static_cast<std::int32_t>(i));
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1] && label[at(i)] >= 0; ++k) {
        const std::int32_t j = a.column[at(k)];
        if (parent_[at(j)] == p || label[at(j)] < 0 || is_zero(a, k)) continue;
        const std::int32_t q = root(j);
        parent_[at(std::max(p, q))] = std::min(p, q);
        p = std::min(p, q);
      }
    }
    // A rank knows its own parts of a body; ghosts tell those of other ranks.
    HostVector<std::int64_t> least(parent_.size());
    const auto spread = [&] {
      std::fill(least.begin(), least.end(), a.rows->all());
      for (std::size_t i = 0; i < label.size(); ++i)
        if (label[i] >= 0) {
          std::int64_t& of_root = least[at(root(static_cast<std::int32_t>(i)))];
          of_root = std::min(of_root, label[i]);
        }
      for (std::size_t i = 0; i < label.size(); ++i)
        if (label[i] >= 0) label[i] = least[at(root(static_cast<std::int32_t>(i)))];
    };
    spread();
    for (bool changed = true; changed;) {
      const HostVector<std::int64_t> come =
          a.cols->fetch<std::int64_t>(std::span<const std::int64_t>(label.data(), at(own)), 1);
      changed = false;
      for (std::size_t g = 0; g < come.size(); ++g) {
        std::int64_t& of_ghost = label[at(own) + g];
        if (come[g] < of_ghost) of_ghost = come[g], changed = true;
      }
      spread();
      changed = a.rows->ranks().all_reduce(changed ? 1 : 0, Reduction::max) == 1;
    }
    of_own.assign(label.begin(), label.begin() + own);
  }

  HostVector<std::int64_t> of_own;

 private:
  static bool is_zero(const NodeRows& a, std::int64_t k) {
    return std::all_of(a.block(k), a.block(k) + a.block_entries(), [](double value) { return value == 0; });
  }
  std::int32_t root(std::int32_t i) {
    while (parent_[at(i)] != i) i = parent_[at(i)] = parent_[at(parent_[at(i)])];
    return i;
  }

  HostVector<std::int32_t> parent_;
};

/// The different numbers of all ranks, ascending; nothing if there are more than `most`. -1 is left out. Collective.
std::vector<std::int64_t> all_labels(const HostVector<std::int64_t>& of_own, std::int64_t most, bool& too_many,
                                     Communicator& ranks) {
  std::vector<std::int64_t> labels(of_own.begin(), of_own.end());
  const auto make_unique = [&] {
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    if (!labels.empty() && labels.front() < 0) labels.erase(labels.begin());
    too_many = ranks.all_reduce(std::ssize(labels) > most ? 1 : 0, Reduction::max) == 1;
  };
  make_unique();
  if (too_many) return {};
  std::vector<std::int64_t> slots(at(most * ranks.size()), -1);
  std::copy(labels.begin(), labels.end(), slots.begin() + most * ranks.rank());
  if (ranks.size() > 1) ranks.all_gather_slots(slots.data(), at(most) * sizeof(std::int64_t));
  labels = std::move(slots);
  make_unique();
  return too_many ? std::vector<std::int64_t>{} : labels;
}

/// Sums over the nodes of a body.
struct BodySums {
  explicit BodySums(int m) : energy(at(m) * at(m)), square(energy) {}
  std::vector<double> energy, square;  ///< Vᵀ·A·V and Vᵀ·V, m × m
};

/// C with (V·C)ᵀ·(V·C) = 1 and (V·C)ᵀ·A·(V·C) small; a column of C each.
std::vector<std::vector<double>> soft_combinations(const BodySums& sums, int count, double largest_diagonal) {
  const auto m = static_cast<std::size_t>(count);
  const SymmetricEigen of_square = symmetric_eigen(sums.square, m);
  std::vector<std::vector<double>> basis;
  for (std::size_t i = 0; i < m; ++i) {
    const double value = of_square.values[i];
    if (!(value > kDependent * of_square.values.back())) continue;
    basis.emplace_back(of_square.vectors.begin() + static_cast<std::ptrdiff_t>(i * m),
                       of_square.vectors.begin() + static_cast<std::ptrdiff_t>((i + 1) * m));
    for (double& entry : basis.back()) entry /= std::sqrt(value);
  }
  const std::size_t n = basis.size();
  std::vector<double> energy(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < m; ++p)
        for (std::size_t q = 0; q < m; ++q) energy[i * n + j] += basis[i][p] * sums.energy[p * m + q] * basis[j][q];
  std::vector<std::vector<double>> soft;
  if (n == 0) return soft;
  const SymmetricEigen of_energy = symmetric_eigen(std::move(energy), n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(of_energy.values[i] <= kSoft * largest_diagonal)) continue;
    std::vector<double>& c = soft.emplace_back(m, 0.0);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < m; ++p) c[p] += of_energy.vectors[i * n + j] * basis[j][p];
  }
  return soft;
}

/// A·V, or |A|·|V|: rows of a.count() nodes. Collective.
template <bool kMagnitudes>
HostVector<double> times_modes(const NodeRows& a, const Modes& modes) {
  const int s = a.row_size, m = modes.count;
  const std::int64_t own = a.count(), entries = std::int64_t{s} * m;
  HostVector<double> all = modes.value;
  const HostVector<double> ghosts = a.cols->fetch<double>(modes.value, entries);
  all.insert(all.end(), ghosts.begin(), ghosts.end());
  if (kMagnitudes) std::transform(all.begin(), all.end(), all.begin(), [](double value) { return std::abs(value); });
  HostVector<double> product(at(own * entries), 0.0);
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    parallel_ranges(own, a.grain(), [&](std::int64_t begin, std::int64_t end) {
      run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
        double magnitudes[kMostUnknowns * kMostUnknowns];
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
            const double* block = a.block(k);
            if constexpr (kMagnitudes) {
              for (int e = 0; e < s * s; ++e) magnitudes[e] = std::abs(block[e]);
              block = magnitudes;
            }
            multigrid::add_product<kS, kM>(block, all.data() + a.column[at(k)] * entries, product.data() + i * entries, s,
                                           m);
          }
      });
    });
  });
  return product;
}

double dot(const double* a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

NullVectors free_modes(const NodeRows& a, const Modes& modes, double allowed) {
  Communicator& ranks = a.rows->ranks();
  const int s = a.row_size, m = modes.count;
  const std::int64_t own = a.count();
  NullVectors found;
  found.constants = s == 1 && m == 1;
  const Bodies bodies(a, modes);
  const std::vector<std::int64_t> labels = all_labels(bodies.of_own, NullVectors::kMostBodies, found.too_many, ranks);
  const std::int64_t count = std::ssize(labels);
  HostVector<std::int32_t> body(at(own));  // -1: of none
  for (std::int64_t i = 0; i < own; ++i)
    body[at(i)] = bodies.of_own[at(i)] < 0
                      ? -1
                      : static_cast<std::int32_t>(std::lower_bound(labels.begin(), labels.end(), bodies.of_own[at(i)]) -
                                                  labels.begin());
  if (count == 0) return found;
  const HostVector<double> force = times_modes<false>(a, modes);  // A·V: of unknown u of a node at (i · s + u) · m
  const auto entries = static_cast<std::int64_t>(2 * m * m);
  std::vector<double> sums(at(count * entries), 0.0), largest(at(count), 0.0), nodes(at(count), 0.0);
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < own; ++i) {
        if (body[at(i)] < 0) continue;
        double* const energy = sums.data() + body[at(i)] * entries;
        const double* const v = modes.value.data() + i * s * m;
        add_transposed_product<kS, kM>(v, force.data() + i * s * m, energy, s, m);
        add_transposed_product<kS, kM>(v, v, energy + m * m, s, m);
      }
    });
  });
  for (std::int64_t i = 0; i < own; ++i) {
    if (body[at(i)] < 0) continue;
    ++nodes[at(body[at(i)])];
    if (const std::int64_t k = a.find(i, static_cast<std::int32_t>(i)); k >= 0)
      for (int r = 0; r < s; ++r)
        largest[at(body[at(i)])] = std::max(largest[at(body[at(i)])], std::abs(a.block(k)[r * s + r]));
  }
  ranks.all_reduce(std::span<double>(sums), Reduction::sum);
  ranks.all_reduce(std::span<double>(nodes), Reduction::sum);
  ranks.all_reduce(std::span<double>(largest), Reduction::max);
  struct Candidate {
    std::int64_t body;
    std::vector<double> factors;
  };
  std::vector<Candidate> candidates;
  for (std::int64_t b = 0; b < count; ++b) {
    BodySums of_body(m);
    const double* const from = sums.data() + b * entries;
    std::copy_n(from, m * m, of_body.energy.begin()), std::copy_n(from + m * m, m * m, of_body.square.begin());
    for (std::vector<double>& c : soft_combinations(of_body, m, largest[at(b)])) candidates.push_back({b, std::move(c)});
  }
  if (candidates.empty()) return found;
  const HostVector<double> magnitude = times_modes<true>(a, modes);
  std::vector<double> norms(2 * candidates.size(), 0.0);  // squares of A·v and of |A|·|v|
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    std::vector<double> sizes = candidates[c].factors;
    for (double& factor : sizes) factor = std::abs(factor);
    for (std::int64_t i = 0; i < own; ++i)
      for (int r = 0; r < s && body[at(i)] == candidates[c].body; ++r) {
        const double f = dot(force.data() + (i * s + r) * m, candidates[c].factors),
                     g = dot(magnitude.data() + (i * s + r) * m, sizes);
        norms[2 * c] += f * f, norms[2 * c + 1] += g * g;
      }
  }
  ranks.all_reduce(std::span<double>(norms), Reduction::sum);
  std::vector<Candidate> free;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (!(norms[2 * c] <= allowed * allowed * norms[2 * c + 1])) continue;
    const std::int64_t b = candidates[c].body;
    if (free.empty() || free.back().body != b)
      found.bodies.push_back({labels[at(b)], static_cast<std::int64_t>(nodes[at(b)]), 0});
    ++found.bodies.back().motions;
    free.push_back(std::move(candidates[c]));
  }
  if (std::ssize(free) > NullVectors::kMost) {
    found.too_many = true;
    return found;
  }
  found.count = static_cast<int>(free.size());
  found.of_own.assign(at(own * s * found.count), 0.0);
  const double norm = std::sqrt(static_cast<double>(a.rows->all() * s));
  for (std::int64_t i = 0; i < own; ++i)
    for (int r = 0; r < s; ++r)
      for (int c = 0; c < found.count; ++c)
        if (free[at(c)].body == body[at(i)])
          found.of_own[at((i * s + r) * found.count + c)] =
              norm * dot(modes.value.data() + (i * s + r) * m, free[at(c)].factors);
  return found;
}

bool may_move_freely(const double* sums, int count, double largest) {
  BodySums of_body(count);
  std::copy_n(sums, count * count, of_body.energy.begin());
  std::copy_n(sums + count * count, count * count, of_body.square.begin());
  return !soft_combinations(of_body, count, largest).empty();
}

double allowed_force(ValueType type) { return type == ValueType::f64 ? 1e-9 : 1e-5; }

NullVectors free_modes(DistributedMatrix& matrix, const MultigridOptions& options, const HeldRows* held) {
  const NodeRows a = take_nodes(matrix, static_cast<int>(block_jacobi_size(matrix)), held, matrix.context().stream());
  return free_modes(a, near_null_space(a, options).modes, allowed_force(matrix.type()));
}

}  // namespace shardmat::multigrid
