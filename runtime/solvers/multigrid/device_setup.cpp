// The set-up on GPUs, of all levels (kernels/blocks).
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/blocks/setup.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/csr.h"
#include "runtime/context/context.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/free_modes.h"
#include "runtime/solvers/multigrid/hierarchy.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/set_up_rules.h"
#include "runtime/solvers/multigrid/take_nodes.h"

namespace shardmat::multigrid {
namespace {

using blocks::BlockRows;

/// Bodies are looked for on the first level that has no more nodes, or on the last one: on large ones this takes longer than
/// anything else.
constexpr std::int64_t kMostNodesForBodies = 100'000;

/// Smaller matrices are set up in host memory.
constexpr std::int64_t kLeastOnDevice = 5000;

template <class T, class Values>
Buffer uploaded(const Values& from, std::int64_t count, Stream& stream) {
  return upload<T>(count, stream, [&](std::int64_t k) { return static_cast<T>(from[static_cast<std::size_t>(k)]); });
}

/// The matrix's values in the order of the source, as it is stored. REQUIRES: it can tell.
Buffer stored_values(const DistributedMatrix& matrix, Stream& stream) {
  const std::int64_t bytes = 8 * matrix.local_nnz();
  require_memory(stream.device(), bytes, "the values of multigrid's finest level");
  Buffer values(stream.device(), at(bytes));
  matrix.write_values(values.as<double>(), stream);
  return values;
}

/// The nodes of the matrix with this rank's ghosts, and of each column the place of its unknown among them, -1 for none.
/// Collective.
std::shared_ptr<const Nodes> nodes_of(const DistributedMatrix& matrix, int size, HostVector<std::int64_t>& place) {
  Communicator& ranks = matrix.context().communicator();
  const RowMap& map = *matrix.y_rows();
  if (ranks.size() == 1) {
    if (!map.in_source_order()) place = rows_of_columns(matrix);
    return nodes_of_one_rank(map.local_rows() / size, ranks);
  }
  place = rows_of_columns(matrix);
  std::vector<std::int64_t> starts;
  for (const std::int64_t start : map.starts()) starts.push_back(start / size);
  Lists columns;
  for (const std::int64_t row : place)
    if (row >= 0) columns.id.push_back(row / size);
  auto nodes = std::make_shared<const Nodes>(starts, ghosts_in(columns, starts, ranks), ranks);
  parallel_ranges(std::ssize(place), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j)
      if (std::int64_t& row = place[at(j)]; row >= 0) row = nodes->local(row / size) * std::int64_t{size} + row % size;
  });
  return nodes;
}

/// This rank's rows in the order of the source, from host memory.
class SourceRows {
 public:
  SourceRows(const CsrView& csr, const RowMap& map) : csr_(csr) {
    if (map.in_source_order()) return;
    row_of_ = map.rows_by_place();
    starts_.resize(at(csr.rows + 1)), starts_[0] = 0;
    for (std::int64_t i = 0; i < csr.rows; ++i)
      starts_[at(i + 1)] = starts_[at(i)] + csr.row_ptr[at(row_of_[at(i)] + 1)] - csr.row_ptr[at(row_of_[at(i)])];
  }
  Buffer starts(Stream& stream) const {
    if (!starts_.empty()) return upload<std::int64_t>(starts_, stream);
    return upload<std::int64_t>(csr_.rows + 1, stream,
                                [&](std::int64_t i) { return csr_.row_ptr[at(i)] - csr_.row_ptr[0]; });
  }
  /// Of columns or values, as T.
  template <class T, class View>
  Buffer entries(const View& view, Stream& stream) const {
    return view.visit([&](auto from) {
      if (starts_.empty()) return uploaded<T>(from, csr_.nnz(), stream);
      return upload_runs<T>(starts_, stream, [&](std::int64_t i, std::int64_t k) {
        return static_cast<T>(from[at(csr_.row_ptr[at(row_of_[at(i)])] - csr_.row_ptr[0] + k)]);
      });
    });
  }

 private:
  const CsrView& csr_;
  HostVector<std::int64_t> row_of_, starts_;  ///< empty: the rows lie so
};

/// Of all entries, in the order of the source: from the stored product if it can tell, else from host memory.
Buffer columns_of(const DistributedMatrix& matrix, const SourceRows& rows, const CsrView& csr, Stream& stream) {
  Buffer columns(stream.device(), at(csr.nnz()) * sizeof(std::int32_t));
  if (!matrix.can_write_values() || !matrix.write_columns(columns.as<std::int32_t>(), stream))
    columns = rows.entries<std::int32_t>(csr.col_idx, stream);
  return columns;
}

/// The rows of the matrix by nodes. Columns and values come from what the product uploaded or from how it is stored, if
/// either is there and can tell, else from host memory. `places`: becomes where new values go, if there may be any.
/// Collective.
DeviceMatrix rows_on_device(DistributedMatrix& matrix, int size, std::optional<blocks::EntryPlaces>& places,
                            Stream& stream) {
  HostVector<std::int64_t> sources;
  DeviceMatrix out;
  out.nodes = nodes_of(matrix, size, sources);
  places.reset();
  on_each_device(matrix.context().communicator(), [&] {
    const CsrView csr = matrix.host_pattern();
    const SourceRows rows(csr, *matrix.y_rows());
    const std::shared_ptr<const CsrStorage> uploaded = matrix.y_rows()->in_source_order() ? KeptUpload::find(csr) : nullptr;
    KeptUpload::forget();
    require_memory(stream.device(), 8 * (csr.rows + 1) + 8 * csr.nnz(), "the rows of multigrid's finest level");
    const Buffer row_ptr = rows.starts(stream);
    Buffer source_of, own_column;
    if (!sources.empty()) source_of = upload<std::int32_t>(sources, stream);
    if (!uploaded) own_column = columns_of(matrix, rows, csr, stream);
    const blocks::EntryRows entries{csr.rows,
                                    csr.nnz(),
                                    size,
                                    row_ptr.as<std::int64_t>(),
                                    (uploaded ? uploaded->col_idx : own_column).as<std::int32_t>(),
                                    source_of.bytes() > 0 ? source_of.as<std::int32_t>() : nullptr};
    out.rows = blocks::take_rows(entries, stream);
    out.rows.cols = out.nodes->local_count();
    blocks::EntryPlaces of_entries = blocks::find_places(entries, out.rows, stream);
    Buffer values;
    if (matrix.can_write_values()) {
      values = stored_values(matrix, stream);
    } else if (!uploaded || uploaded->type != ValueType::f64) {
      require_memory(stream.device(), 8 * csr.nnz(), "the values of multigrid's finest level");
      values = rows.entries<double>(matrix.host_rows(stream).values, stream);
    }
    blocks::set_values(of_entries, values.bytes() > 0 || !uploaded ? values : uploaded->values, out.rows, stream);
    if (matrix.options().values == Values::updatable) places = std::move(of_entries);
  });
  return out;
}

/// Collective.
double asymmetry(const DeviceMatrix& a, Stream& stream) {
  Communicator& ranks = a.nodes->ranks();
  blocks::AsymmetrySums sums{};
  on_each_device(ranks, [&] {
    Buffer numbers;
    if (ranks.size() > 1)
      numbers = upload<std::int64_t>(a.nodes->local_count(), stream, [&](std::int64_t j) { return a.nodes->global(j); });
    sums = blocks::asymmetry_sums(a.rows, ranks.size() > 1 ? &numbers : nullptr, stream);
  });
  ranks.all_reduce(std::span<double>(sums), Reduction::sum);
  return blocks::asymmetry(sums);
}

/// The modes of a matrix's columns: `own` themselves on one rank. Collective.
class ModesOfColumns {
 public:
  ModesOfColumns(const DeviceMatrix& a, const DeviceModes& modes, Stream& stream) : own_(modes.value) {
    if (a.nodes->ranks().size() > 1)
      all_ = with_ghost_values(*a.nodes, modes.value, std::int64_t{a.rows.row_size} * modes.count, stream);
    else is_alone_ = true;
  }
  const Buffer& get() const { return is_alone_ ? own_ : all_; }

 private:
  const Buffer& own_;
  Buffer all_;
  bool is_alone_ = false;
};

/// The modes of the finest level, and why these. Collective. REQUIRES: no vectors are given.
DeviceModes find_modes(const DeviceMatrix& a, const MultigridOptions& options, Stream& stream) {
  const int s = a.rows.row_size;
  Communicator& ranks = a.nodes->ranks();
  WantedModes wanted = wanted_modes(*a.nodes, s, options);
  if (wanted.kind == WantedModes::rigid) {  // why_not_on_device(): of nodes along the global axes
    const NodeCoordinates& coordinates = *options.coordinates;
    const Centre centre = centre_of(coordinates, *a.nodes);
    DeviceModes found{coordinates.dimensions == 2 ? 3 : 6, {}, wanted.why};
    on_each_device(ranks, [&] {
      const Buffer on_device = uploaded<double>(coordinates.of_own, std::ssize(coordinates.of_own), stream);
      found.value = blocks::rigid_body_modes(on_device, coordinates.dimensions, a.rows.count, s, centre.at.data(),
                                             centre.reach, stream);
      blocks::clear_alone(a.rows, found.value, found.count, stream);
    });
    if (options.near_null_space == "rigid") return found;
    const ModesOfColumns of_columns(a, found, stream);
    double counts[2] = {};
    on_each_device(ranks, [&] {
      const std::int64_t step = std::max<std::int64_t>(1, a.rows.count / kSampledNodes);
      const blocks::RowCounts of_rows =
          blocks::count_small_rows(a.rows, of_columns.get(), found.count, step, kSmallInRow, stream);
      counts[0] = static_cast<double>(of_rows.small), counts[1] = static_cast<double>(of_rows.coupled);
    });
    ranks.all_reduce(std::span<double>(counts), Reduction::sum);
    const std::optional<std::string> unfit = unfit_rigid_modes(counts[1] == 0 ? 0 : counts[0] / counts[1], s);
    if (!unfit) return found;
    wanted.why = *unfit;
  }
  DeviceModes found{s, {}, wanted.why};
  on_each_device(ranks, [&] {
    found.value = blocks::constant_modes(a.rows.count, s, stream);
    blocks::clear_alone(a.rows, found.value, found.count, stream);
  });
  return found;
}

/// Which bodies of the ranks are parts of one. A body has the number kListed · rank + its place in the list of its rank.
/// Collective.
std::vector<double> join_bodies(const DeviceMatrix& a, const blocks::Couplings& couplings, const blocks::Bodies& bodies,
                                Stream& stream) {
  Communicator& ranks = a.nodes->ranks();
  constexpr double kNone = -1;
  const double first = static_cast<double>(blocks::Bodies::kListed) * ranks.rank();
  const auto number = [&](std::int32_t body) {
    const auto found = std::lower_bound(bodies.listed.begin(), bodies.listed.end(), body);
    return body < 0 ? kNone : first + static_cast<double>(found - bodies.listed.begin());
  };
  HostVector<double> of_node(at(a.rows.count));
  blocks::BodiesAtGhosts here;
  on_each_device(ranks, [&] {
    HostVector<std::int32_t> body(at(a.rows.count));
    if (!body.empty()) copy_to_host(body.data(), bodies.of_node.data(), bodies.of_node.bytes(), stream);
    std::transform(body.begin(), body.end(), of_node.begin(), number);
    here = blocks::bodies_at_ghosts(a.rows, couplings, bodies, stream);
  });
  const HostVector<double> there = a.nodes->fetch<double>(of_node, 1);
  std::vector<double> joined(at(std::int64_t{blocks::Bodies::kListed} * ranks.size()));
  std::iota(joined.begin(), joined.end(), 0.0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t g = 0; g < there.size(); ++g) {
      if (here.most[g] < 0 || there[g] == kNone) continue;
      double* const parts[] = {&joined[static_cast<std::size_t>(number(here.least[g]))],
                               &joined[static_cast<std::size_t>(number(here.most[g]))],
                               &joined[static_cast<std::size_t>(there[g])]};
      const double least = std::min({*parts[0], *parts[1], *parts[2]});
      for (double* const part : parts)
        if (*part != least) *part = least, changed = true;
    }
    const std::vector<double> before = joined;
    ranks.all_reduce(std::span<double>(joined), Reduction::min);
    changed = ranks.all_reduce(changed || before != joined ? 1 : 0, Reduction::max) == 1;
  }
  return joined;
}

/// Throws LeaveDevice if a body may be free to move: the host finds out how. Of any level: bodies and what they resist stay
/// on the way down, since P maps the coarse modes to modes, but for what A resists. Collective.
void require_held_bodies(const DeviceMatrix& a, const DeviceModes& modes, Stream& stream) {
  Communicator& ranks = a.nodes->ranks();
  const ModesOfColumns of_columns(a, modes, stream);
  Buffer diagonal;
  blocks::Couplings couplings;
  blocks::Bodies bodies;
  on_each_device(ranks, [&] {
    diagonal = blocks::diagonal_places(a.rows, stream);
    couplings = blocks::coupling_norms(a.rows, diagonal, stream);
    bodies = blocks::find_bodies(a.rows, couplings, modes.value, modes.count, stream);
    if (bodies.count > blocks::Bodies::kListed) throw LeaveDevice{"the system falls into many bodies"};
  });
  const std::vector<double> joined = join_bodies(a, couplings, bodies, stream);
  const std::int64_t values = 2 * modes.count * modes.count;
  std::vector<double> sums(joined.size() * at(values)), largest(joined.size()), is_there(joined.size());
  on_each_device(ranks, [&] {
    std::vector<double> mine(at(values + 1));
    for (std::size_t n = 0; n < bodies.listed.size(); ++n) {
      blocks::body_sums(a.rows, diagonal, of_columns.get(), modes.count, bodies, bodies.listed[n], mine.data(), stream);
      const auto to = static_cast<std::size_t>(joined[at(std::int64_t{blocks::Bodies::kListed} * ranks.rank()) + n]);
      for (std::int64_t e = 0; e < values; ++e) sums[to * at(values) + at(e)] += mine[at(e)];
      largest[to] = std::max(largest[to], mine.back()), is_there[to] = 1;
    }
  });
  ranks.all_reduce(std::span<double>(sums), Reduction::sum);
  ranks.all_reduce(std::span<double>(largest), Reduction::max);
  ranks.all_reduce(std::span<double>(is_there), Reduction::max);
  for (std::size_t body = 0; body < joined.size(); ++body)
    if (is_there[body] > 0 && may_move_freely(sums.data() + body * at(values), modes.count, largest[body]))
      throw LeaveDevice{"a body may be free to move"};
}

/// Of all ranks, stored zeros of blocks included. Collective.
double nonzeros(const DeviceMatrix& a) {
  return a.nodes->ranks().all_reduce(static_cast<double>(a.rows.blocks * a.rows.block_entries()), Reduction::sum);
}

/// The rows in host memory. Not collective.
NodeRows in_host_memory(const DeviceMatrix& a, Stream& stream) {
  const BlockRows& rows = a.rows;
  NodeRows out{rows.row_size, rows.col_size, a.nodes, a.nodes, {}, {}, {}};
  out.start.resize(at(rows.count + 1)), out.column.resize(at(rows.blocks));
  out.value.resize(at(rows.blocks * rows.block_entries()));
  copy_to_host(out.start.data(), rows.start.data(), rows.start.bytes(), stream);
  if (rows.blocks == 0) return out;
  copy_to_host(out.column.data(), rows.column.data(), rows.column.bytes(), stream);
  copy_to_host(out.value.data(), rows.value.data(), rows.value.bytes(), stream);
  return out;
}

/// The inverse of the last level's matrix, of which one rank has all rows. Collective.
BlockRows inverse_of(const DeviceMatrix& a, Stream& stream) {
  BlockRows inverse;
  on_each_device(a.nodes->ranks(), [&] {
    inverse = a.rows.count > 0 ? blocks::dense_inverse(a.rows, stream) : blocks::stacked(a.rows, 0, {}, {}, 0, stream);
  });
  return inverse;
}

}  // namespace

std::string Hierarchy::why_not_on_device(const HeldRows* held) const {
  Communicator& ranks = context_.communicator();
  const auto why = [&]() -> std::string {
    if (is_half(options_.inner) && ranks.size() > 1) return "there are several ranks";
    if (columns_ > 1 && is_half(options_.inner)) return "there are several right-hand sides";
    if (held != nullptr && !held->rows().empty()) return "penalty rows are held";
    if (mid_edges_.any) return "nodes in the middle of edges are left out";
    if (options_.near_null_space == "adaptive") return "cycles find vectors";
    if (options_.near_null_vectors) return "vectors are given";
    if (options_.coordinates && (options_.coordinates->has_axes() || !options_.coordinates->unknowns.empty()))
      return "unknowns of a node are along axes of its own, or in another order";
    if (options_.smoother != "auto" && !find_smoother(options_.smoother).takes_blocks)
      return "the smoother needs the rows of each level";
    return {};
  };
  try {
    on_each_device(ranks, [&] {
      if (std::string mine = why(); !mine.empty()) throw LeaveDevice{std::move(mine)};
    });
  } catch (const LeaveDevice& leave) {
    return leave.why;
  }
  return {};
}

void Hierarchy::took_on_device(const char* part) {
  context_.stream().synchronize();
  took(part);
}

bool Hierarchy::build_on_device(DistributedMatrix& matrix, const HeldRows* held) {
  Stream& stream = context_.stream();
  const auto give_up = [&](std::string why) {
    clear_levels();
    report_.set_up_on_gpu = false, report_.why_on_host = std::move(why);
    return false;
  };
  clear_levels();
  report_.set_up_on_gpu = false, report_.why_on_host.clear();
  if (context_.device().backend != Backend::cuda) return false;
  report_.why_on_host = why_not_on_device(held);
  if (!report_.why_on_host.empty()) return false;
  if (map_->size() <= std::max(kLeastOnDevice, options_.coarse_size)) return give_up("the matrix is small");
  try {
    DeviceMatrix a = rows_on_device(matrix, size_, value_places_, stream);
    took_on_device("rows");
    take_kind(asymmetry(a, stream));
    if (!symmetric_) return give_up("the matrix is not symmetric");
    DeviceModes modes = find_modes(a, options_, stream);
    took_on_device("near null space");
    report_.modes = modes.why;
    report_.set_up_on_gpu = true;
    null_vectors_ = {};
    null_vectors_.constants = size_ == 1 && modes.count == 1;
    DeviceMatrix pattern;
    Growth growth;
    growth.first = nonzeros(a);
    growth.most = most_complexity(size_, modes.count);
    for (bool looked = false;;) {
      const auto look = [&] {
        if (!std::exchange(looked, true)) require_held_bodies(a, modes, stream);
        took_on_device("near null space");
      };
      if (a.nodes->all() <= kMostNodesForBodies) look();
      std::optional<DeviceMatrix> next = add_level_on_device(a, modes, growth);
      if (!next) look();
      if (levels_.size() == 1) pattern = std::move(a), pattern.rows.value = {};
      if (!next) break;
      a = std::move(*next);
    }
    device_pattern_ = std::move(pattern);
    finish(growth);
    return true;
  } catch (const LeaveDevice& leave) {
    return give_up(leave.why);
  } catch (const AgreedError& error) {  // of what stores the levels
    if (error.kind() != ErrorKind::resources) throw;
    return give_up("device memory does not suffice");
  }
}

std::optional<DeviceMatrix> Hierarchy::add_level_on_device(const DeviceMatrix& a, DeviceModes& modes, Growth& growth) {
  Stream& stream = context_.stream();
  Communicator& ranks = context_.communicator();
  const bool has_square_modes = !levels_.empty() && modes.count == a.rows.row_size;
  levels_.push_back(std::make_unique<Level>(a.rows, a.nodes, context_, options_.inner, columns_,
                                            has_square_modes ? &modes.value : nullptr));
  Level& here = *levels_.back();
  const double here_nonzeros = nonzeros(a);
  growth.all += here_nonzeros;
  const std::int64_t unknowns = a.nodes->all() * a.rows.row_size;
  report_.levels.push_back(
      {unknowns, static_cast<std::int64_t>(here_nonzeros), 0, unknowns <= options_.coarse_size, a.nodes->owners()});
  took_on_device("stored matrices");
  if (unknowns <= options_.coarse_size) {
    // Several ranks that have rows all invert the matrix; in host memory they do so alike.
    if (a.nodes->owners() > 1) here.set_inverse(dense_inverse(in_host_memory(a, stream), Modes(), true));
    else here.set_inverse(inverse_of(a, stream), *a.nodes);
    took_on_device("inverse");
    return std::nullopt;
  }
  Buffer diagonal, inverse;
  blocks::Couplings couplings;
  on_each_device(ranks, [&] {
    diagonal = blocks::diagonal_places(a.rows, stream), inverse = blocks::inverse_diagonal(a.rows, diagonal, stream);
    couplings = blocks::coupling_norms(a.rows, diagonal, stream);
  });
  const double radius = here.find_radius(inverse, kLanczosSteps, stream);
  report_.levels.back().radius = radius;
  here.set_smoother(*smoother_, options_.smoother_degree, inverse, radius);
  took_on_device("smoothers");
  if (std::ssize(levels_) >= options_.levels) return std::nullopt;
  std::optional<DeviceMatrix> next = coarsen_on_device(a, diagonal, inverse, couplings, radius, modes, growth);
  if (!next) return next;
  // Two visits of a level may take as long as one of the first level.
  if (levels_.size() > 1 && cycle_ != "V" && 2 * growth.visits * here_nonzeros <= growth.first)
    here.set_second_visit(combination()), growth.visits *= 2;
  here.set_transfer(on_device_.back());
  took_on_device("stored matrices");
  return next;
}

std::optional<DeviceMatrix> Hierarchy::coarsen_on_device(const DeviceMatrix& a, const Buffer& diagonal,
                                                         const Buffer& inverse, const blocks::Couplings& couplings,
                                                         double radius, DeviceModes& modes, const Growth& growth) {
  Stream& stream = context_.stream();
  Communicator& ranks = context_.communicator();
  const int m = modes.count;
  const double left = growth.most * growth.first - growth.all;
  bool heed_hinges = a.rows.row_size > 1, was_too_dense = false;
  Buffer hinges;
  if (heed_hinges) on_each_device(ranks, [&] { hinges = blocks::find_hinges(a.rows, diagonal, inverse, stream); });
  const double first = first_strength();
  for (double strength = first;; strength = next_strength(strength)) {
    if (strength == 0 && heed_hinges) heed_hinges = false, strength = first;
    else if (strength == 0 && was_too_dense) throw LeaveDevice{"aggregates must reach farther"};
    const bool last = strength == 0;
    blocks::StrongGraph strong;
    on_each_device(ranks, [&] {
      strong = blocks::strong_couplings(a.rows, couplings, strength, heed_hinges ? &hinges : nullptr, stream);
    });
    if (!last && ranks.all_reduce(strong.edges, Reduction::sum) == 0) continue;  // as of stencils with many equal entries
    blocks::Aggregates aggregates;
    on_each_device(ranks, [&] { aggregates = blocks::make_aggregates(strong, stream); });
    strong = {};
    took_on_device("aggregates");
    double counts[] = {static_cast<double>(aggregates.count), static_cast<double>(aggregates.single),
                       static_cast<double>(aggregates.taken)};
    ranks.all_reduce(std::span<double>(counts), Reduction::sum);
    const auto [count, single, taken] = counts;
    if (count == 0) return std::nullopt;
    const bool too_many = count * m > kLeastCoarsening * taken * a.rows.row_size;
    if ((too_many || 2 * single > taken) && !last) continue;
    if (too_many) return std::nullopt;
    DeviceCoarsening way(a, std::move(aggregates), modes, least_nodes(m), stream);
    way.smooth(a, inverse, damping(a.rows.row_size) / radius, stream);
    took_on_device("prolongations");
    std::optional<DeviceMatrix> next =
        way.multiply(a, diagonal, last ? std::numeric_limits<double>::infinity() : std::max(0.0, left / (m * m)), stream);
    took_on_device("coarse matrices");
    if (!next) {
      was_too_dense = true;
      continue;
    }
    modes.value = way.take_coarse_modes();
    on_device_.push_back(std::move(way));
    return next;
  }
}

bool Hierarchy::refresh_on_device(DistributedMatrix& matrix, const HeldRows* held) {
  Stream& stream = context_.stream();
  Communicator& ranks = context_.communicator();
  if (!report_.set_up_on_gpu || !why_not_on_device(held).empty() || options_.refresh == "anew") return false;
  if (ranks.all_reduce(value_places_ && matrix.can_write_values() ? 1 : 0, Reduction::min) == 0) return false;
  try {
    DeviceMatrix next, *a = &device_pattern_;
    on_each_device(ranks, [&] { blocks::set_values(*value_places_, stored_values(matrix, stream), a->rows, stream); });
    took_on_device("rows");
    if (asymmetry(*a, stream) > kMostAsymmetry) return false;
    took_on_device("symmetry");
    for (std::size_t l = 0;; ++l) {
      Level& here = *levels_[l];
      on_each_device(ranks, [&] { here.update(a->rows); });
      took_on_device("stored matrices");
      if (here.is_solved()) {
        if (a->nodes->owners() > 1) {
          here.update_inverse(dense_inverse(in_host_memory(*a, stream), Modes(), true));
        } else {
          const BlockRows inverse = inverse_of(*a, stream);
          on_each_device(ranks, [&] { here.update_inverse(inverse); });
        }
        took_on_device("inverse");
        break;
      }
      Buffer diagonal, inverse;
      on_each_device(ranks, [&] {
        diagonal = blocks::diagonal_places(a->rows, stream), inverse = blocks::inverse_diagonal(a->rows, diagonal, stream);
      });
      // As refresh() does in host memory.
      const bool keeps = options_.refresh == "keep";
      double& radius = report_.levels[l].radius;
      radius = std::max(keeps ? radius : 0, here.find_radius(inverse, keeps ? kStepsOfRefresh : kLanczosSteps, stream));
      on_each_device(ranks, [&] { here.update_smoother(inverse, radius); });
      took_on_device("smoothers");
      if (l == on_device_.size()) break;
      DeviceCoarsening& way = on_device_[l];
      if (!keeps) {
        way.smooth(*a, inverse, damping(a->rows.row_size) / radius, stream);
        took_on_device("prolongations");
        on_each_device(ranks, [&] { here.update_transfer(way); });
        took_on_device("stored matrices");
      }
      next = way.multiply_again(*a, diagonal, stream);
      took_on_device("coarse matrices");
      device_pattern_.rows.value = {};
      a = &next;
    }
    device_pattern_.rows.value = {};
    return true;
  } catch (const LeaveDevice&) {  // everything is made anew
    return false;
  } catch (const AgreedError& error) {
    if (error.kind() != ErrorKind::resources) throw;
    return false;
  }
}

const NodeRows& Hierarchy::prolongation(std::int64_t level) const {
  return report_.set_up_on_gpu ? on_device_[at(level)].copy_of_p(context_.stream()) : coarsenings_[at(level)].p;
}

}  // namespace shardmat::multigrid
