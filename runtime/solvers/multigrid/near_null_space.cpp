#include "runtime/solvers/multigrid/near_null_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/first_where.h"
#include "kernels/base/parallel.h"
#include "partition/source/node_facts.h"

namespace shardmat::multigrid {
namespace {

Modes constants(std::int64_t nodes, int size) {
  Modes modes{size, size, HostVector<double>(at(nodes * size * size), 0.0)};
  for (std::int64_t i = 0; i < nodes; ++i)
    for (int r = 0; r < size; ++r) modes.value[at((i * size + r) * size + r)] = 1;
  return modes;
}

/// Displacements alone, or the rotations of the node, too, as beams and shells have them; shells may have two.
bool fits_rigid_modes(int unknowns, const NodeCoordinates& coordinates) {
  const int d = coordinates.in_space();
  return unknowns == d || (d == 3 && unknowns == 6) || (d == 2 && unknowns == 3) ||
         (coordinates.has_axes() && unknowns == 5);
}

/// What displacements of nodes that have axes are along.
enum class Along { own_axes, global_axes };

/// The modes in a node at `p` in space, which has been scaled by 1 / turn: displacements, then rotations.
std::array<std::array<double, 6>, 6> modes_in_space(const double* p, double turn) {
  return {{{1, 0, 0, -p[1], 0, p[2]},
           {0, 1, 0, p[0], -p[2], 0},
           {0, 0, 1, 0, p[1], -p[0]},
           {0, 0, 0, 0, turn, 0},
           {0, 0, 0, 0, 0, turn},
           {0, 0, 0, turn, 0, 0}}};
}

/// Translations, and rotations about the centre; lengths scaled so that all modes are of one size. REQUIRES:
/// fits_rigid_modes(size, coordinates).
Modes rigid_body_modes(const NodeCoordinates& coordinates, const Nodes& nodes, int size, Along along) {
  const int d = coordinates.in_space();
  const auto [centre, reach] = centre_of(coordinates, nodes);
  const int count = d == 2 ? 3 : 6;
  Modes modes{size, count, HostVector<double>(at(nodes.own() * size * count), 0.0)};
  const auto of_node = [&](std::int64_t i, double* to) {
    const double* const given = coordinates.of_own.data() + i * coordinates.dimensions;
    double p[3] = {};
    for (int c = 0; c < d; ++c) p[c] = (given[c] - centre[at(c)]) / reach;
    const double turn = 1 / reach;
    const double in_plane[] = {1, 0, -p[1], 0, 1, p[0], 0, 0, turn};
    const auto rows = modes_in_space(p, turn);
    for (int r = 0; r < size; ++r, to += count) {
      const int unknown = coordinates.unknowns.empty() ? r : coordinates.unknowns[at(i * size + r)];
      const bool turned = coordinates.has_axes() && (unknown >= 3 || along == Along::own_axes);
      if (d == 2) std::copy_n(in_plane + 3 * unknown, count, to);
      else if (!turned) std::copy_n(rows[at(unknown)].data(), count, to);
      else
        for (int m = 0; m < count; ++m)
          for (int k = 0; k < 3; ++k) to[m] += given[3 + 3 * (unknown % 3) + k] * rows[at(unknown / 3 * 3 + k)][at(m)];
    }
  };
  parallel_ranges(nodes.own(), grain_of(nodes.own(), std::ssize(modes.value)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) of_node(i, modes.value.data() + i * size * count);
  });
  return modes;
}

/// Unknowns without couplings are known values: corrections leave them alone.
void clear_alone(const NodeRows& a, Modes& modes) {
  const int s = a.row_size;
  parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (int r = 0; r < s; ++r) {
        bool coupled = false;
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1] && !coupled; ++k)
          for (int c = 0; c < s && !coupled; ++c) coupled = a.block(k)[r * s + c] != 0 && (a.column[at(k)] != i || c != r);
        if (!coupled) std::fill_n(modes.value.data() + (i * s + r) * modes.count, modes.count, 0.0);
      }
  });
}

/// The share of rows that map every mode to almost 0, of some nodes of each rank. Collective.
double share_of_small_rows(const NodeRows& a, const Modes& modes) {
  const int s = a.row_size, m = modes.count;
  const std::int64_t step = std::max<std::int64_t>(1, a.count() / kSampledNodes);
  const HostVector<double> ghosts = a.cols->fetch<double>(modes.value, std::int64_t{s} * m);
  const auto mode = [&](std::int64_t unknown, int v) {
    const std::int64_t own = a.count() * s;
    return unknown < own ? modes.value[at(unknown * m + v)] : ghosts[at((unknown - own) * m + v)];
  };
  std::array<double, 2> counts{};  // small, coupled
  for (std::int64_t i = 0; i < a.count(); i += step)
    for (int r = 0; r < s; ++r) {
      bool small = true, coupled = false;
      for (int v = 0; v < m; ++v) {
        double sum = 0, absolute = 0;
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
          for (int c = 0; c < s; ++c) {
            const double term = a.block(k)[r * s + c] * mode(std::int64_t{a.column[at(k)]} * s + c, v);
            sum += term, absolute += std::abs(term);
          }
        small = small && std::abs(sum) <= kSmallInRow * absolute;
        coupled = coupled || absolute > 0;
      }
      counts[0] += small && coupled ? 1 : 0, counts[1] += coupled ? 1 : 0;
    }
  a.rows->ranks().all_reduce(std::span<double>(counts), Reduction::sum);
  return counts[1] == 0 ? 0 : counts[0] / counts[1];
}

/// Throws Error(usage) if some ranks give another number of `what` than others. Collective.
void require_same(int number, const char* what, const char* name, Communicator& ranks) {
  int least_and_most[] = {number, -number};
  ranks.all_reduce(std::span<int>(least_and_most), Reduction::min);
  ranks.run_agreed([&] {
    if (least_and_most[0] != -least_and_most[1])
      throw Error(ErrorKind::usage,
                  fmt::format("some ranks give {} {}, others {}; give them on all ranks or on none", least_and_most[0], what,
                              -least_and_most[1]),
                  name);
  });
}

void require_finite(const HostVector<double>& values, const char* what, const char* name) {
  if (first_where(std::ssize(values), 1 << 14, [&](std::int64_t i) { return !std::isfinite(values[at(i)]); }))
    throw Error(ErrorKind::input, fmt::format("{} hold NaN or infinity", what), name);
}

/// Not collective.
void require_fitting(const NodeCoordinates& given, std::int64_t own, int size) {
  if (!NodeCoordinates::allows(given.dimensions))
    throw Error(ErrorKind::usage,
                fmt::format("a node has 2 or 3 coordinates, or 3 and its three axes: 12 numbers, not {}", given.dimensions),
                "coordinates");
  const std::int64_t nodes = std::ssize(given.of_own) / given.dimensions;
  if (nodes * given.dimensions != std::ssize(given.of_own) || nodes != own)
    throw Error(ErrorKind::usage,
                fmt::format("coordinates of {} nodes are given, but this rank has {} nodes of {} unknown{}", nodes, own,
                            size, size == 1 ? "" : "s"),
                "coordinates");
  require_finite(given.of_own, "the coordinates", "coordinates");
  for (std::int64_t i = 0; given.has_axes() && i < nodes; ++i)
    if (!are_axes(given.of_own.data() + i * given.dimensions + 3))
      throw Error(ErrorKind::input,
                  fmt::format("the axes of node {} of this rank are not of length 1 and at right angles", i), "coordinates");
}

/// Not collective.
void require_fitting(const NearNullVectors& given, std::int64_t unknowns, const std::string& asked) {
  if (given.count < 1 || given.count > NearNullVectors::kMost)
    throw Error(ErrorKind::usage,
                fmt::format("there are {} near-null vectors; give 1 to {}", given.count, NearNullVectors::kMost),
                "near_null_vectors");
  if (asked != "auto")
    throw Error(ErrorKind::usage,
                fmt::format("near-null vectors are given, and near_null_space is {}; leave one of them out", asked),
                "near_null_space");
  if (std::ssize(given.of_own) != unknowns * given.count)
    throw Error(ErrorKind::usage,
                fmt::format("{} near-null vectors come with {} values, but this rank has {} unknowns; give {} values",
                            given.count, given.of_own.size(), unknowns, unknowns * given.count),
                "near_null_vectors");
  require_finite(given.of_own, "the near-null vectors", "near_null_vectors");
}

/// The vectors of the caller, scaled to a largest magnitude of 1. Throws Error(input) if one is 0. Collective.
NearNullSpace take_vectors(const NearNullVectors& given, const NodeRows& a) {
  Communicator& ranks = a.rows->ranks();
  const int m = given.count;
  std::vector<double> largest(at(m), 0.0);
  for (std::size_t i = 0; i < given.of_own.size(); ++i)
    largest[i % at(m)] = std::max(largest[i % at(m)], std::abs(given.of_own[i]));
  ranks.all_reduce(std::span<double>(largest), Reduction::max);
  ranks.run_agreed([&] {
    for (int v = 0; v < m; ++v)
      if (largest[at(v)] == 0)
        throw Error(ErrorKind::input, fmt::format("near-null vector {} of {} is 0 in all unknowns; leave it out", v + 1, m),
                    "near_null_vectors");
  });
  NearNullSpace found{{a.row_size, m, given.of_own}, fmt::format("{} given vector{}", m, m == 1 ? "" : "s")};
  for (std::size_t i = 0; i < found.modes.value.size(); ++i) found.modes.value[i] /= largest[i % at(m)];
  clear_alone(a, found.modes);
  return found;
}

}  // namespace

Centre centre_of(const NodeCoordinates& coordinates, const Nodes& nodes) {
  const int d = coordinates.in_space(), each = coordinates.dimensions;
  Centre c;
  for (std::int64_t i = 0; i < nodes.own(); ++i)
    for (int k = 0; k < d; ++k) c.at[at(k)] += coordinates.of_own[at(i * each + k)];
  nodes.ranks().all_reduce(std::span<double>(c.at), Reduction::sum);
  for (double& x : c.at) x /= static_cast<double>(std::max<std::int64_t>(1, nodes.all()));
  for (std::int64_t i = 0; i < nodes.own(); ++i)
    for (int k = 0; k < d; ++k) c.reach = std::max(c.reach, std::abs(coordinates.of_own[at(i * each + k)] - c.at[at(k)]));
  c.reach = nodes.ranks().all_reduce(c.reach, Reduction::max);
  if (!(c.reach > 0)) c.reach = 1;
  return c;
}

WantedModes wanted_modes(const Nodes& nodes, int size, const MultigridOptions& options) {
  Communicator& ranks = nodes.ranks();
  const NodeCoordinates* const coordinates = options.coordinates.get();
  const std::string& asked = options.near_null_space;
  const NearNullVectors* const vectors = options.near_null_vectors.get();
  require_same(coordinates == nullptr ? 0 : coordinates->dimensions, "coordinates of a node", "coordinates", ranks);
  require_same(vectors == nullptr ? 0 : vectors->count, "near-null vectors", "near_null_vectors", ranks);
  ranks.run_agreed([&] {
    if (asked != "auto" && asked != "rigid" && asked != "constants" && asked != "adaptive")
      throw Error(ErrorKind::usage,
                  fmt::format("near_null_space must be auto, rigid, constants or adaptive, not \"{}\"", asked),
                  "near_null_space");
    if (asked == "rigid" && coordinates == nullptr)
      throw Error(ErrorKind::usage, "rigid-body modes need the coordinates of the nodes; give them, or take constants",
                  "coordinates");
    if (coordinates != nullptr) require_fitting(*coordinates, nodes.own(), size);
    if (vectors != nullptr) require_fitting(*vectors, nodes.own() * size, asked);
  });
  const auto constants = [&](const std::string& why) {
    return WantedModes{WantedModes::constants,
                       fmt::format("{}{}", size == 1 ? "the constant" : fmt::format("{} constants", size), why)};
  };
  if (vectors != nullptr) return {WantedModes::given, {}};
  if (asked == "constants" || asked == "adaptive" || size == 1) return constants("");
  if (coordinates == nullptr) return constants(": no coordinates are given");
  if (!fits_rigid_modes(size, *coordinates)) {
    ranks.run_agreed([&] {
      if (asked == "rigid")
        throw Error(ErrorKind::usage,
                    fmt::format("rigid-body modes need as many unknowns a node as coordinates, or rotations as well (6 in "
                                "space, or 5 and axes, 3 in the plane): {} and {}",
                                size, coordinates->in_space()),
                    "near_null_space");
    });
    return constants(fmt::format(": nodes have {} unknowns and {} coordinates{}", size, coordinates->in_space(),
                                 size == 5 ? ", but no axes" : ""));
  }
  return {WantedModes::rigid, fmt::format("{} rigid-body modes", coordinates->in_space() == 2 ? 3 : 6)};
}

std::optional<std::string> unfit_rigid_modes(double share, int size) {
  if (share >= 0.05) return std::nullopt;
  return fmt::format("{} constants: A maps rigid-body modes to almost 0 in {:.0f} % of the rows only", size, 100 * share);
}

NearNullSpace near_null_space(const NodeRows& a, const MultigridOptions& options) {
  WantedModes wanted = wanted_modes(*a.rows, a.row_size, options);
  if (wanted.kind == WantedModes::given) return take_vectors(*options.near_null_vectors, a);
  if (wanted.kind == WantedModes::rigid) {
    const bool has_axes = options.coordinates->has_axes(), checks = options.near_null_space != "rigid";
    double best = -1;
    NearNullSpace found;
    for (const Along along : {Along::own_axes, Along::global_axes}) {
      if (along == Along::global_axes && (!has_axes || !unfit_rigid_modes(best, a.row_size))) break;
      Modes modes = rigid_body_modes(*options.coordinates, *a.rows, a.row_size, along);
      clear_alone(a, modes);
      const double share = checks || has_axes ? share_of_small_rows(a, modes) : 0;
      if (share <= best) continue;
      best = share;
      found = {std::move(modes), wanted.why + (!has_axes                  ? ""
                                               : along == Along::own_axes ? " along the axes of the nodes"
                                                                          : ", displacements along the global axes")};
    }
    const std::optional<std::string> unfit = checks ? unfit_rigid_modes(best, a.row_size) : std::nullopt;
    if (!unfit) return found;
    wanted.why = *unfit;
  }
  NearNullSpace found{constants(a.count(), a.row_size), wanted.why};
  clear_alone(a, found.modes);
  return found;
}

}  // namespace shardmat::multigrid
