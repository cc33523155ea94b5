// The set-up on a GPU, of all levels (kernels/blocks).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/blocks/setup.h"
#include "kernels/formats/upload.h"
#include "runtime/context/context.h"
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

/// The device cannot go on; the host can. Why, for the report.
struct LeaveDevice {
  std::string why;
};

template <class T, class Values>
Buffer uploaded(const Values& from, std::int64_t count, Stream& stream) {
  return upload<T>(count, stream, [&](std::int64_t k) { return static_cast<T>(from[static_cast<std::size_t>(k)]); });
}

/// The rows of the matrix by nodes.
BlockRows rows_on_device(DistributedMatrix& matrix, int size, Stream& stream) {
  const CsrView csr = matrix.host_rows(stream);
  const RowMap& map = *matrix.y_rows();
  Buffer row_of, source_of;
  if (!map.in_source_order()) {
    const HostVector<std::int64_t> rows = map.rows_by_place(), sources = rows_of_columns(matrix);
    row_of = uploaded<std::int64_t>(rows, std::ssize(rows), stream);
    source_of = uploaded<std::int32_t>(sources, std::ssize(sources), stream);
  }
  require_memory(stream.device(), 8 * (csr.rows + 1) + 12 * csr.nnz(), "the rows of multigrid's finest level");
  const std::int64_t begin = csr.row_ptr[0];
  const Buffer row_ptr =
      upload<std::int64_t>(csr.rows + 1, stream, [&](std::int64_t i) { return csr.row_ptr[at(i)] - begin; });
  const Buffer column = csr.col_idx.visit([&](auto from) { return uploaded<std::int32_t>(from, csr.nnz(), stream); });
  const Buffer value = csr.values.visit([&](auto from) { return uploaded<double>(from, csr.nnz(), stream); });
  return blocks::take_rows({csr.rows, csr.nnz(), row_ptr.as<std::int64_t>(), column.as<std::int32_t>(), value.as<double>()},
                           size, row_of.bytes() > 0 ? row_of.as<std::int64_t>() : nullptr,
                           source_of.bytes() > 0 ? source_of.as<std::int32_t>() : nullptr, stream);
}

/// A copy without values.
BlockRows pattern_of(const BlockRows& a, Stream& stream) {
  BlockRows out;
  out.row_size = a.row_size, out.col_size = a.col_size;
  out.count = a.count, out.cols = a.cols, out.blocks = a.blocks;
  for (const auto& [from, to] : {std::pair{&a.start, &out.start}, std::pair{&a.column, &out.column}}) {
    *to = Buffer(stream.device(), from->bytes());
    copy_on_device(to->data(), from->data(), from->bytes(), stream);
  }
  return out;
}

template <class T>
HostVector<T> downloaded(const Buffer& from, Stream& stream) {
  HostVector<T> to(from.bytes() / sizeof(T));
  copy_to_host(to.data(), from.data(), from.bytes(), stream);
  return to;
}

/// The modes of the finest level, and why these. REQUIRES: no vectors are given.
DeviceModes find_modes(const BlockRows& a, const MultigridOptions& options, Communicator& ranks, Stream& stream) {
  const int s = a.row_size;
  const auto nodes = nodes_of_one_rank(a.count, ranks);
  WantedModes wanted = wanted_modes(*nodes, s, options);
  if (wanted.kind == WantedModes::rigid) {  // why_not_on_device(): of nodes along the global axes
    const NodeCoordinates& coordinates = *options.coordinates;
    const Centre centre = centre_of(coordinates, *nodes);
    const Buffer on_device = uploaded<double>(coordinates.of_own, std::ssize(coordinates.of_own), stream);
    DeviceModes found{
        coordinates.dimensions == 2 ? 3 : 6,
        blocks::rigid_body_modes(on_device, coordinates.dimensions, a.count, s, centre.at.data(), centre.reach, stream),
        wanted.why};
    blocks::clear_alone(a, found.value, found.count, stream);
    if (options.near_null_space == "rigid") return found;
    const std::int64_t step = std::max<std::int64_t>(1, a.count / kSampledNodes);
    const blocks::RowCounts counts = blocks::count_small_rows(a, found.value, found.count, step, kSmallInRow, stream);
    const double share = counts.coupled == 0 ? 0 : static_cast<double>(counts.small) / static_cast<double>(counts.coupled);
    const std::optional<std::string> unfit = unfit_rigid_modes(share, s);
    if (!unfit) return found;
    wanted.why = *unfit;
  }
  DeviceModes found{s, blocks::constant_modes(a.count, s, stream), wanted.why};
  blocks::clear_alone(a, found.value, found.count, stream);
  return found;
}

/// Throws LeaveDevice if a body may be free to move: the host finds out how. Of any level: bodies and what they resist stay
/// on the way down, since P maps the coarse modes to modes, but for what A resists.
void require_held_bodies(const BlockRows& a, const DeviceModes& modes, Stream& stream) {
  const Buffer diagonal = blocks::diagonal_places(a, stream);
  const blocks::Couplings couplings = blocks::coupling_norms(a, diagonal, stream);
  const blocks::Bodies bodies = blocks::find_bodies(a, couplings, modes.value, modes.count, stream);
  if (bodies.count > blocks::Bodies::kListed) throw LeaveDevice{"the system falls into many bodies"};
  std::vector<double> sums(at(2 * modes.count * modes.count + 1));
  for (const std::int32_t body : bodies.listed) {
    blocks::body_sums(a, diagonal, modes.value, modes.count, bodies, body, sums.data(), stream);
    if (may_move_freely(sums.data(), modes.count, sums.back())) throw LeaveDevice{"a body may be free to move"};
  }
}

}  // namespace

std::string Hierarchy::why_not_on_device(const HeldRows* held) const {
  if (context_.communicator().size() > 1) return "there are several ranks";
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
  if (matrix.rows() <= std::max(kLeastOnDevice, options_.coarse_size)) return give_up("the matrix is small");
  try {
    BlockRows a = rows_on_device(matrix, size_, stream);
    took_on_device("rows");
    take_kind(blocks::asymmetry(a, stream));
    if (!symmetric_) return give_up("the matrix is not symmetric");
    DeviceModes modes = find_modes(a, options_, context_.communicator(), stream);
    took_on_device("near null space");
    report_.modes = modes.why;
    report_.set_up_on_gpu = true;
    null_vectors_ = {};
    null_vectors_.constants = size_ == 1 && modes.count == 1;
    BlockRows pattern;
    Growth growth;
    growth.first = static_cast<double>(a.blocks * a.block_entries());
    growth.most = most_complexity(size_, modes.count);
    for (bool looked = false;;) {
      const auto look = [&] {
        if (!std::exchange(looked, true)) require_held_bodies(a, modes, stream);
        took_on_device("near null space");
      };
      if (a.count <= kMostNodesForBodies) look();
      std::optional<BlockRows> next = add_level_on_device(a, modes, growth);
      if (!next) look();
      if (levels_.size() == 1) pattern = std::move(a), pattern.value = {};
      if (!next) break;
      a = std::move(*next);
    }
    device_pattern_ = std::move(pattern);
    finish(growth);
    return true;
  } catch (const LeaveDevice& leave) {
    return give_up(leave.why);
  } catch (const blocks::TooWide&) {
    return give_up("a row of a level has too many blocks");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resources) throw;
    return give_up("device memory does not suffice");
  }
}

std::optional<BlockRows> Hierarchy::add_level_on_device(const BlockRows& a, DeviceModes& modes, Growth& growth) {
  Stream& stream = context_.stream();
  const bool has_square_modes = !levels_.empty() && modes.count == a.row_size;
  levels_.push_back(
      std::make_unique<Level>(a, context_, options_.inner, columns_, has_square_modes ? &modes.value : nullptr));
  Level& here = *levels_.back();
  const auto nonzeros = static_cast<double>(a.blocks * a.block_entries());
  growth.all += nonzeros;
  const std::int64_t unknowns = a.count * a.row_size;
  report_.levels.push_back({unknowns, static_cast<std::int64_t>(nonzeros), 0, unknowns <= options_.coarse_size, 1});
  took_on_device("stored matrices");
  if (unknowns <= options_.coarse_size) {
    here.set_inverse(blocks::dense_inverse(a, stream));
    took_on_device("inverse");
    return std::nullopt;
  }
  const Buffer diagonal = blocks::diagonal_places(a, stream), inverse = blocks::inverse_diagonal(a, diagonal, stream);
  const blocks::Couplings couplings = blocks::coupling_norms(a, diagonal, stream);
  const double radius = here.find_radius(inverse, kLanczosSteps, stream);
  report_.levels.back().radius = radius;
  here.set_smoother(*smoother_, options_.smoother_degree, inverse, radius);
  took_on_device("smoothers");
  if (std::ssize(levels_) >= options_.levels) return std::nullopt;
  std::optional<BlockRows> next = coarsen_on_device(a, diagonal, inverse, couplings, radius, modes, growth);
  if (!next) return next;
  // Two visits of a level may take as long as one of the first level.
  if (levels_.size() > 1 && cycle_ != "V" && 2 * growth.visits * nonzeros <= growth.first)
    here.set_second_visit(combination()), growth.visits *= 2;
  here.set_transfer(on_device_.back().p, on_device_.back().transposed_p);
  took_on_device("stored matrices");
  return next;
}

std::optional<BlockRows> Hierarchy::coarsen_on_device(const BlockRows& a, const Buffer& diagonal, const Buffer& inverse,
                                                      const blocks::Couplings& couplings, double radius, DeviceModes& modes,
                                                      const Growth& growth) {
  Stream& stream = context_.stream();
  const int m = modes.count;
  const double left = growth.most * growth.first - growth.all;
  bool heed_hinges = a.row_size > 1, was_too_dense = false;
  const Buffer hinges = heed_hinges ? blocks::find_hinges(a, diagonal, inverse, stream) : Buffer();
  const double first = first_strength();
  for (double strength = first;; strength = next_strength(strength)) {
    if (strength == 0 && heed_hinges) heed_hinges = false, strength = first;
    else if (strength == 0 && was_too_dense) throw LeaveDevice{"aggregates must reach farther"};
    const bool last = strength == 0;
    const blocks::StrongGraph strong =
        blocks::strong_couplings(a, couplings, strength, heed_hinges ? &hinges : nullptr, stream);
    blocks::Aggregates aggregates = blocks::make_aggregates(strong, stream);
    took_on_device("aggregates");
    if (aggregates.count == 0) return std::nullopt;
    const auto count = static_cast<double>(aggregates.count), taken = static_cast<double>(aggregates.taken);
    const bool too_many = count * m > kLeastCoarsening * taken * a.row_size;
    if ((too_many || 2 * aggregates.single > aggregates.taken) && !last) continue;
    if (too_many) return std::nullopt;
    DeviceCoarsening way;
    Buffer next_modes;
    way.t = blocks::tentative(aggregates, modes.value, a.row_size, m, next_modes, stream);
    int longest = 0;
    const std::int64_t any = std::numeric_limits<std::int64_t>::max();
    way.p = blocks::product_pattern(a, way.t, any, longest, stream);
    blocks::multiply_values(a, way.t, longest, way.p, stream);
    blocks::smooth(way.p, way.t, aggregates, inverse, kDamping / radius, stream);
    way.longest_p = longest;
    way.transposed_p = blocks::transposed(way.p, way.block_of, stream);
    took_on_device("prolongations");
    way.ap = blocks::product_pattern(a, way.p, any, way.longest_ap, stream);
    const std::int64_t most = last ? any : static_cast<std::int64_t>(std::max(0.0, left / (m * m)));
    BlockRows next = blocks::product_pattern(way.transposed_p, way.ap, most, way.longest_next, stream);
    if (next.blocks > most) {
      was_too_dense = true;
      took_on_device("coarse matrices");
      continue;
    }
    way.aggregates = std::move(aggregates);
    way.next = pattern_of(next, stream);
    way.multiply(a, diagonal, next, stream);
    took_on_device("coarse matrices");
    modes.value = std::move(next_modes);
    on_device_.push_back(std::move(way));
    return next;
  }
}

void DeviceCoarsening::multiply(const BlockRows& a, const Buffer& diagonal, BlockRows& to, Stream& stream) {
  blocks::multiply_values(a, p, longest_ap, ap, stream);
  blocks::multiply_values(transposed_p, ap, longest_next, to, stream);
  blocks::mend_diagonal(to, t, aggregates, a, diagonal, stream);
  ap.value = {};
}

std::int64_t DeviceCoarsening::device_bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(block_of.bytes());
  for (const BlockRows* const rows : {&t, &p, &transposed_p, &ap, &next})
    bytes += static_cast<std::int64_t>(rows->start.bytes() + rows->column.bytes() + rows->value.bytes());
  for (const Buffer* const one : {&aggregates.of_node, &aggregates.start, &aggregates.member})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

bool Hierarchy::refresh_on_device(DistributedMatrix& matrix, const HeldRows* held) {
  Stream& stream = context_.stream();
  if (!report_.set_up_on_gpu || !why_not_on_device(held).empty() || options_.refresh == "anew") return false;
  BlockRows a = rows_on_device(matrix, size_, stream);
  took_on_device("rows");
  if (!blocks::same_pattern(a, device_pattern_, stream) || blocks::asymmetry(a, stream) > kMostAsymmetry) return false;
  for (std::size_t l = 0;; ++l) {
    Level& here = *levels_[l];
    here.update(a);
    took_on_device("stored matrices");
    if (here.is_solved()) {
      here.update_inverse(blocks::dense_inverse(a, stream));
      took_on_device("inverse");
      return true;
    }
    const Buffer diagonal = blocks::diagonal_places(a, stream), inverse = blocks::inverse_diagonal(a, diagonal, stream);
    // As refresh() does in host memory.
    const bool keeps = options_.refresh == "keep";
    double& radius = report_.levels[l].radius;
    radius = std::max(keeps ? radius : 0, here.find_radius(inverse, keeps ? kStepsOfRefresh : kLanczosSteps, stream));
    here.update_smoother(inverse, radius);
    took_on_device("smoothers");
    if (l == on_device_.size()) return true;
    DeviceCoarsening& way = on_device_[l];
    if (!keeps) {
      blocks::multiply_values(a, way.t, way.longest_p, way.p, stream);
      blocks::smooth(way.p, way.t, way.aggregates, inverse, kDamping / radius, stream);
      way.copy_of_p.reset();
      blocks::transpose_values(way.p, way.block_of, way.transposed_p, stream);
      took_on_device("prolongations");
      here.update_transfer(way.p, way.transposed_p);
      took_on_device("stored matrices");
    }
    BlockRows next = pattern_of(way.next, stream);
    way.multiply(a, diagonal, next, stream);
    took_on_device("coarse matrices");
    a = std::move(next);
  }
}

const NodeRows& Hierarchy::prolongation(std::int64_t level) const {
  if (!report_.set_up_on_gpu) return coarsenings_[at(level)].p;
  std::optional<NodeRows>& copy = on_device_[at(level)].copy_of_p;
  if (!copy) {
    const BlockRows& p = on_device_[at(level)].p;
    Communicator& ranks = context_.communicator();
    Stream& stream = context_.stream();
    copy = NodeRows{p.row_size,
                    p.col_size,
                    nodes_of_one_rank(p.count, ranks),
                    nodes_of_one_rank(p.cols, ranks),
                    downloaded<std::int64_t>(p.start, stream),
                    downloaded<std::int32_t>(p.column, stream),
                    downloaded<double>(p.value, stream)};
  }
  return *copy;
}

}  // namespace shardmat::multigrid
