#include "runtime/shared_gpu/own_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "runtime/maps/range_route.h"
#include "runtime/maps/row_map.h"
#include "runtime/solvers/loop/null_vectors.h"

namespace shardmat {
namespace {

HostVector<double> of_group(const GroupOperand& operand) {
  const std::span<const double> values = operand.as<const double>();
  return {values.begin(), values.end()};
}

HostVector<double> brought(const HostVector<double>& values, std::int64_t each, const DistributedMatrix& matrix) {
  return matrix.y_rows()->route()->bring<double>(values, each, matrix.context().communicator());
}

/// `each` values of every node, once for each of its unknowns.
HostVector<double> for_unknowns(const HostVector<double>& of_nodes, std::int64_t each, std::int64_t size) {
  HostVector<double> all;
  all.reserve(of_nodes.size() * static_cast<std::size_t>(size));
  for (auto node = of_nodes.begin(); node < of_nodes.end(); node += each)
    for (std::int64_t r = 0; r < size; ++r) all.insert(all.end(), node, node + each);
  return all;
}

/// The opposite.
HostVector<double> for_nodes(const HostVector<double>& of_unknowns, std::int64_t each, std::int64_t size) {
  HostVector<double> all;
  for (auto node = of_unknowns.begin(); node < of_unknowns.end(); node += each * size)
    all.insert(all.end(), node, node + each);
  return all;
}

void require_coordinates(const NodeCoordinates& given, const GroupMatrix& matrix) {
  if (!NodeCoordinates::allows(given.dimensions))
    throw Error(ErrorKind::usage,
                fmt::format("a node has 2 or 3 coordinates, or 3 and its three axes: 12 numbers, not {}", given.dimensions),
                "coordinates");
  require_nodes_of_rows(std::ssize(given.of_own) / given.dimensions, matrix);
}

/// Near-null vectors, then those of the null space.
auto vectors_in(auto& options) {
  return std::array{&options.preconditioning.multigrid.near_null_vectors, &options.null_vectors};
}

struct VectorKind {
  const char *what, *name;
  int most;
};
constexpr std::array kVectorKinds{VectorKind{"near-null vectors", "near_null_vectors", NearNullVectors::kMost},
                                  VectorKind{"vectors of the null space", "null_vectors", NullVectors::kMost}};

void require_vectors(const NearNullVectors& given, const VectorKind& kind, const GroupMatrix& matrix) {
  if (given.count < 1 || given.count > kind.most)
    throw Error(ErrorKind::usage, fmt::format("there are {} {}; give 1 to {}", given.count, kind.what, kind.most),
                kind.name);
  if (std::ssize(given.of_own) != matrix.own_rows() * given.count)
    throw Error(ErrorKind::usage,
                fmt::format("{} {} come with {} values, but this rank has {} rows; give {} values", given.count, kind.what,
                            given.of_own.size(), matrix.own_rows(), matrix.own_rows() * given.count),
                kind.name);
}

}  // namespace

void require_nodes_of_rows(std::int64_t nodes, const GroupMatrix& matrix) {
  const std::int64_t rows = matrix.own_rows(), size = matrix.node_block_size();
  if (rows % size != 0)
    throw Error(ErrorKind::usage,
                fmt::format("coordinates are given, but the {} rows of this rank are not whole nodes of {} unknowns; give "
                            "each rank whole nodes",
                            rows, size),
                "coordinates");
  if (nodes != rows / size)
    throw Error(ErrorKind::usage,
                fmt::format("coordinates of {} nodes are given, but this rank has {} nodes of {} unknown{}", nodes,
                            rows / size, size, size == 1 ? "" : "s"),
                "coordinates");
}

void require_own_nodes(const SolverOptions& given, const GroupMatrix& matrix) {
  Communicator& ranks = matrix.context().ranks();
  const auto& coordinates = given.preconditioning.multigrid.coordinates;
  const auto vectors = vectors_in(given);
  ranks.run_agreed([&] {
    if (coordinates) require_coordinates(*coordinates, matrix);
    for (std::size_t i = 0; i < vectors.size(); ++i)
      if (*vectors[i]) require_vectors(**vectors[i], kVectorKinds[i], matrix);
  });
  const auto count = [](const auto& part) { return part ? part->count : 0; };
  require_same_on_all_ranks(
      ranks, {given_number("dimensions", coordinates ? coordinates->dimensions : 0),
              given_number("near_null_count", count(*vectors[0])), given_number("null_count", count(*vectors[1]))});
}

std::vector<Operand> operands_of(const SolverOptions& given) {
  const auto operand = [](const auto& part) {
    return part ? Operand::given(part->of_own.data(), part->of_own.size() * sizeof(double)) : Operand();
  };
  return {operand(given.preconditioning.multigrid.coordinates), operand(*vectors_in(given)[0]),
          operand(*vectors_in(given)[1])};
}

void take_nodes_of_group(SolverOptions& options, std::span<const GroupOperand> all) {
  auto& coordinates = options.preconditioning.multigrid.coordinates;
  if (coordinates)
    coordinates = std::make_shared<const NodeCoordinates>(NodeCoordinates{coordinates->dimensions, of_group(all[0])});
  for (std::size_t i = 0; auto* const vectors : vectors_in(options)) {
    ++i;
    if (*vectors) *vectors = std::make_shared<const NearNullVectors>(NearNullVectors{(*vectors)->count, of_group(all[i])});
  }
}

void bring_own_nodes(SolverOptions& options, const GroupMatrix& matrix) {
  const DistributedMatrix& of = matrix.matrix();
  if (of.y_rows()->route() == nullptr) return;
  if (auto& coordinates = options.preconditioning.multigrid.coordinates; coordinates) {
    const std::int64_t size = matrix.node_block_size();
    const int dimensions = coordinates->dimensions;
    const HostVector<double> mine =
        of.context().communicator().run_agreed([&] { return for_unknowns(coordinates->of_own, dimensions, size); });
    const HostVector<double> moved = brought(mine, dimensions, of);
    coordinates = std::make_shared<const NodeCoordinates>(NodeCoordinates{dimensions, for_nodes(moved, dimensions, size)});
  }
  for (auto* const vectors : vectors_in(options))
    if (*vectors) {
      const int count = (*vectors)->count;
      *vectors = std::make_shared<const NearNullVectors>(NearNullVectors{count, brought((*vectors)->of_own, count, of)});
    }
}

}  // namespace shardmat
