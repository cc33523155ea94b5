#include "runtime/solvers/eigen/pencil.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/matrix/csr.h"
#include "runtime/context/context.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/solvers/eigen/eigen_matrix.h"
#include "runtime/solvers/eigen/eigenpairs.h"
#include "runtime/solvers/loop/penalty_rows.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/loop/symmetry.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat::modes {
namespace {

using multigrid::NodeRows;

void require_pair(const DistributedMatrix& k, const DistributedMatrix* m) {
  require_eigen_matrix("eigen", k);
  const auto refuse = [](const std::string& text, const char* setting) { throw Error(ErrorKind::usage, text, setting); };
  if (k.context().device().backend != Backend::host)
    refuse("this method runs on the host only; take the backend host, or the method lanczos for one matrix", "backend");
  if (k.type() != ValueType::f64) refuse("this method computes in f64; the matrix has another type", "type");
  if (m == nullptr) return;
  if (m->type() != ValueType::f64) refuse("this method computes in f64; the mass matrix has another type", "type");
  if (m->y_rows()->number() != k.y_rows()->number())
    refuse("K and M must lie on the same row maps; make M with the maps of K (MatrixOptions::y_rows)", "mass");
}

void require_one_size(const DistributedMatrix& k, const DistributedMatrix& m) {
  if (m.rows() == k.rows() && m.cols() == k.cols()) return;
  throw Error(ErrorKind::usage,
              fmt::format("K is {} × {} and M is {} × {}; K x = λ M x needs matrices of one size", k.rows(), k.cols(),
                          m.rows(), m.cols()),
              "mass");
}

/// Calls use(row, column, value, on_diagonal) for each entry of this rank's rows; columns are places of x.
template <class Use>
void for_entries(DistributedMatrix& matrix, const HostVector<std::int64_t>& ids_of_x, Stream& stream, const Use& use) {
  const CsrView csr = matrix.host_rows(stream);
  const HostVector<std::int64_t>& ids = matrix.y_rows()->ids();
  csr.col_idx.visit([&](const auto& columns) {
    csr.values.visit([&](const auto& values) {
      for (std::int64_t i = 0; i < csr.rows; ++i)
        for (std::int64_t e = csr.row_ptr[at(i)] - csr.row_ptr[0]; e < csr.row_ptr[at(i) + 1] - csr.row_ptr[0]; ++e) {
          const auto place = static_cast<std::int64_t>(columns[at(e)]);
          use(i, place, static_cast<double>(values[at(e)]), ids_of_x[at(place)] == ids[at(i)]);
        }
    });
  });
}

/// A matrix on the maps of K of what `list(entry)` says by entry(row, column, value), with numbers of the source.
template <class List>
std::unique_ptr<DistributedMatrix> from_triplets(const DistributedMatrix& k, const List& list) {
  Context& context = k.context();
  std::vector<std::int64_t> row, column;
  std::vector<double> value;
  OwnTriplets triplets;
  context.communicator().run_agreed([&] {
    const HostVector<std::int64_t> own = k.y_rows()->ids_by_place();
    if (!own.empty() && own.back() - own.front() + 1 != std::ssize(own))
      throw Error(ErrorKind::usage, "the rows of K on this rank do not follow each other; make M with the maps of K",
                  "mass");
    list([&](std::int64_t i, std::int64_t j, double entry) {
      row.push_back(i), column.push_back(j), value.push_back(entry);
    });
    triplets.range = {own.empty() ? 0 : own.front(), std::ssize(own)};
    triplets.cols = k.cols();
    triplets.rows = row, triplets.columns = column, triplets.values = value.data();
  });
  MatrixOptions options;
  options.y_rows = k.y_rows();
  options.plan.products = k.options().plan.products;
  MatrixPart part = take_triplets(triplets, context, ValueType::f64, "", k.nodes_are_whole() ? k.node_block_size() : 1);
  return std::make_unique<DistributedMatrix>(std::move(part), context, options);
}

}  // namespace

std::unique_ptr<DistributedMatrix> on_maps_of(const DistributedMatrix& k, DistributedMatrix& m) {
  Context& context = k.context();
  context.communicator().run_agreed([&] { require_one_size(k, m); });
  if (m.y_rows()->number() == k.y_rows()->number()) return nullptr;
  const HostVector<std::int64_t> ids_of_x = m.column_ids();
  return from_triplets(k, [&](const auto& entry) {
    const HostVector<std::int64_t>& ids = m.y_rows()->ids();
    for_entries(m, ids_of_x, context.stream(), [&](std::int64_t i, std::int64_t place, double value, bool) {
      entry(ids[at(i)], ids_of_x[at(place)], value);
    });
  });
}

Pencil::Pencil(DistributedMatrix& k, DistributedMatrix* m, bool assume_symmetric) : k_(k), m_(m) {
  Communicator& ranks = k.context().communicator();
  ranks.run_agreed([&] { require_pair(k, m); });
  k_product_ = k.product(kPanel);
  if (m != nullptr) m_product_ = m->product(kPanel);
  find_held_rows();
  k_product_->hold(&held_k_);
  if (m != nullptr) m_product_->hold(&held_m_);
  if (assume_symmetric) return;
  require_symmetric(*k_product_, m == nullptr ? "the matrix" : "K");
  if (m != nullptr) require_symmetric(*m_product_, "M");
}

void Pencil::require_symmetric(const Product& product, const char* name) const {
  const SymmetryProbe probe = probe_symmetry(product, k_.context().stream());
  k_.context().communicator().run_agreed([&] {
    if (probe.symmetric) return;
    throw Error(
        ErrorKind::usage,
        fmt::format("{} is not symmetric: xᵀAy and yᵀAx of random x and y differ by {:.3g}, and its magnitudes add up "
                    "to {:.3g}; this method needs symmetric matrices",
                    name, probe.difference, probe.scale),
        name[0] == 'M' ? "mass" : "matrix");
  });
}

/// Looks at the entries of both matrices once.
void Pencil::find_held_rows() {
  Communicator& ranks = k_.context().communicator();
  Stream& stream = k_.context().stream();
  const PenaltyFindings penalty = find_penalty_rows(
      k_, PenaltyRows::automatic, [&]() -> const Product& { return *k_product_; }, stream);
  const HostVector<std::int64_t> k_ids = k_.column_ids(),
                                 m_ids = m_ != nullptr ? m_->column_ids() : HostVector<std::int64_t>();
  const std::int64_t rows = local_rows();
  HostVector<double> held, m_diagonal;
  std::array<double, 3> counts{};  // identity rows, rows that are coupled
  ranks.run_agreed([&] {
    k_diagonal_.assign(at(rows), 0), m_diagonal.assign(at(rows), 1), held.assign(at(rows), 0);
    HostVector<char> coupled(at(rows), 0);
    for_entries(k_, k_ids, stream, [&](std::int64_t i, std::int64_t, double value, bool on_diagonal) {
      if (on_diagonal) k_diagonal_[at(i)] = value;
      else if (value != 0) coupled[at(i)] = 1;
    });
    if (m_ != nullptr) {
      std::fill(m_diagonal.begin(), m_diagonal.end(), 0.0);
      for_entries(*m_, m_ids, stream, [&](std::int64_t i, std::int64_t, double value, bool on_diagonal) {
        if (on_diagonal) m_diagonal[at(i)] = value;
      });
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool identity = m_ != nullptr && coupled[at(i)] == 0 && k_diagonal_[at(i)] == 1;
      held[at(i)] = identity ? 1 : 0;
      counts[0] += identity ? 1 : 0, counts[1] += coupled[at(i)] != 0 ? 1 : 0;
    }
  });
  ranks.all_reduce(std::span<double>(counts), Reduction::sum);
  if (counts[1] == 0) {  // a diagonal matrix: these rows are the problem
    std::fill(held.begin(), held.end(), 0.0);
    counts[0] = 0;
  }
  for (const std::int64_t row : penalty.rows) held[at(row)] = 1;
  identity_rows_ = static_cast<std::int64_t>(counts[0]), penalty_rows_ = penalty.count,
  penalty_ratio_ = penalty.largest_ratio;
  const HostVector<double> k_held = k_.column_values(held),
                           m_held = m_ != nullptr ? m_->column_values(held) : HostVector<double>();
  std::array<double, 7> sums{};  // of K: magnitudes, diagonal; of M: magnitudes, diagonal; held, without mass, below 0
  ranks.run_agreed([&] {
    for_entries(k_, k_ids, stream, [&](std::int64_t i, std::int64_t place, double value, bool) {
      if (held[at(i)] == 0 && k_held[at(place)] == 0) sums[0] += std::abs(value);
    });
    if (m_ != nullptr)
      for_entries(*m_, m_ids, stream, [&](std::int64_t i, std::int64_t place, double value, bool) {
        if (held[at(i)] == 0 && m_held[at(place)] == 0) sums[2] += std::abs(value);
      });
    for (std::int64_t i = 0; i < rows; ++i) {
      if (held[at(i)] != 0) {
        ++sums[4];
        continue;
      }
      sums[1] += k_diagonal_[at(i)], sums[3] += m_diagonal[at(i)];
      if (m_diagonal[at(i)] == 0) ++sums[5];
      if (m_diagonal[at(i)] < 0) ++sums[6];
    }
  });
  ranks.all_reduce(std::span<double>(sums), Reduction::sum);
  ranks.run_agreed([&] {
    if (sums[6] > 0)
      throw Error(
          ErrorKind::input,
          fmt::format("M is not positive definite: {:.0f} of its diagonal entries are below 0; is it the mass matrix?",
                      sums[6]),
          "mass");
    if (sums[3] == 0 && rows > 0 && sums[4] < static_cast<double>(k_.rows()))
      throw Error(ErrorKind::input, "M is not positive definite: its diagonal is 0; is it the mass matrix?", "mass");
    HostVector<std::int64_t> places;
    for (std::int64_t i = 0; i < rows; ++i)
      if (held[at(i)] != 0) places.push_back(i);
    const auto count = static_cast<std::int64_t>(sums[4]);
    held_k_.set(places, count, sums[0], stream);
    held_m_.set(places, count, sums[2], stream);
  });
  massless_ = static_cast<std::int64_t>(sums[5]);
  mean_value_ = sums[3] > 0 ? sums[1] / sums[3] : 0;
}

void Pencil::multiply_k(const double* x, double* y) {
  const Timer timer;
  Stream& stream = k_.context().stream();
  ConstDense from = k_product_->y_view(const_cast<double*>(x));
  k_product_->multiply(1, from, 0, k_product_->y_view(y), stream);
  k_product_->wait(stream);
  k_seconds += timer.seconds();
}

void Pencil::multiply_m(const double* x, double* y) {
  const Timer timer;
  if (m_product_ == nullptr) {
    std::copy_n(x, local_rows() * kPanel, y);
  } else {
    Stream& stream = k_.context().stream();
    ConstDense from = m_product_->y_view(const_cast<double*>(x));
    m_product_->multiply(1, from, 0, m_product_->y_view(y), stream);
    m_product_->wait(stream);
  }
  m_seconds += timer.seconds();
}

void Pencil::multiply_k(const Panels& x, const Panels& y) {
  for (std::size_t p = 0; p < x.size(); ++p) multiply_k(x[p], y[p]);
}

void Pencil::multiply_m(const Panels& x, const Panels& y) {
  for (std::size_t p = 0; p < x.size(); ++p) multiply_m(x[p], y[p]);
}

void Pencil::clear_held(double* panel) {
  if (held_k_.count() > 0) held_k_.clear(view(panel), k_.context().stream());
}

void Pencil::fill_random(const Panels& x, std::int64_t columns, std::uint64_t seed) {
  Stream& stream = k_.context().stream();
  DistributedVector random(k_, VectorLayout::rows, ValueType::f64);
  for (std::int64_t j = 0; j < columns; ++j) {
    shardmat::fill_random(random, seed + static_cast<std::uint64_t>(j), Entries::fractions, stream);
    const auto* const from = static_cast<const double*>(random.view().data);
    double* const to = x[at(j / kPanel)] + j % kPanel;
    for (std::int64_t i = 0; i < local_rows(); ++i) to[i * kPanel] = from[i];
  }
  for (double* const panel : x) clear_held(panel);
}

NodeRows Pencil::shifted(double sigma) {
  Stream& stream = k_.context().stream();
  Communicator& ranks = k_.context().communicator();
  NodeRows k = multigrid::take_nodes(k_, 1, held(), stream);
  if (sigma == 0) return k;
  const RowMap& map = *k_.y_rows();
  std::optional<NodeRows> m;
  if (m_ != nullptr) m = multigrid::take_nodes(*m_, 1, held(), stream);
  multigrid::Lists lists;
  lists.each = 1;
  ranks.run_agreed([&] {
    HostVector<char> is_held(at(k.count()), 0);
    const HostVector<std::int64_t> places = map.places_of_rows();
    if (held() != nullptr)
      for (const std::int64_t row : held()->rows()) is_held[at(places[at(row)])] = 1;
    for (std::int64_t i = 0; i < k.count(); ++i) {
      const auto take = [&](const NodeRows& from, double factor) {
        for (std::int64_t e = from.start[at(i)]; e < from.start[at(i) + 1]; ++e)
          lists.id.push_back(from.cols->global(from.column[at(e)])), lists.value.push_back(factor * from.value[at(e)]);
      };
      take(k, 1);
      if (is_held[at(i)] == 0) {
        if (m) take(*m, -sigma);
        else lists.id.push_back(k.rows->first() + i), lists.value.push_back(-sigma);
      }
      lists.start.push_back(std::ssize(lists.id));
    }
  });
  return multigrid::square_from_lists(lists, 1, k.rows->starts(), ranks);
}

std::unique_ptr<DistributedMatrix> Pencil::combined(double sigma) {
  Stream& stream = k_.context().stream();
  const HostVector<std::int64_t> k_ids = k_.column_ids(),
                                 m_ids = m_ != nullptr ? m_->column_ids() : HostVector<std::int64_t>();
  HostVector<double> is_held(at(local_rows()), 0.0);
  for (const std::int64_t row : held_k_.rows()) is_held[at(row)] = 1;
  const HostVector<double> k_held = k_.column_values(is_held),
                           m_held = m_ != nullptr ? m_->column_values(is_held) : HostVector<double>();
  return from_triplets(k_, [&](const auto& entry) {
    const HostVector<std::int64_t>& ids = k_.y_rows()->ids();
    for_entries(k_, k_ids, stream, [&](std::int64_t i, std::int64_t place, double value, bool) {
      if (is_held[at(i)] == 0 && k_held[at(place)] == 0) entry(ids[at(i)], k_ids[at(place)], value);
    });
    if (m_ != nullptr)
      for_entries(*m_, m_ids, stream, [&](std::int64_t i, std::int64_t place, double value, bool) {
        if (is_held[at(i)] == 0 && m_held[at(place)] == 0) entry(ids[at(i)], m_ids[at(place)], -sigma * value);
      });
    for (std::int64_t i = 0; i < local_rows(); ++i) {
      if (is_held[at(i)] != 0) entry(ids[at(i)], ids[at(i)], 1);
      else if (m_ == nullptr) entry(ids[at(i)], ids[at(i)], -sigma);
    }
  });
}

}  // namespace shardmat::modes
