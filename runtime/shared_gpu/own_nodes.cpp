#include "runtime/shared_gpu/own_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "runtime/maps/range_route.h"
#include "runtime/maps/row_map.h"

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
  if (given.dimensions != 2 && given.dimensions != 3)
    throw Error(ErrorKind::usage, fmt::format("a node has 2 or 3 coordinates, not {}", given.dimensions), "coordinates");
  require_nodes_of_rows(std::ssize(given.of_own) / given.dimensions, matrix);
}

void require_vectors(const NearNullVectors& given, const GroupMatrix& matrix) {
  if (given.count < 1 || given.count > NearNullVectors::kMost)
    throw Error(ErrorKind::usage,
                fmt::format("there are {} near-null vectors; give 1 to {}", given.count, NearNullVectors::kMost),
                "near_null_vectors");
  if (std::ssize(given.of_own) != matrix.own_rows() * given.count)
    throw Error(ErrorKind::usage,
                fmt::format("{} near-null vectors come with {} values, but this rank has {} rows; give {} values",
                            given.count, given.of_own.size(), matrix.own_rows(), matrix.own_rows() * given.count),
                "near_null_vectors");
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

void require_own_nodes(const MultigridOptions& given, const GroupMatrix& matrix) {
  Communicator& ranks = matrix.context().ranks();
  ranks.run_agreed([&] {
    if (given.coordinates) require_coordinates(*given.coordinates, matrix);
    if (given.near_null_vectors) require_vectors(*given.near_null_vectors, matrix);
  });
  require_same_on_all_ranks(ranks,
                            {given_number("dimensions", given.coordinates ? given.coordinates->dimensions : 0),
                             given_number("near_null_count", given.near_null_vectors ? given.near_null_vectors->count : 0)});
}

std::vector<Operand> operands_of(const MultigridOptions& given) {
  const auto operand = [](const auto& part) {
    return part ? Operand::given(part->of_own.data(), part->of_own.size() * sizeof(double)) : Operand();
  };
  return {operand(given.coordinates), operand(given.near_null_vectors)};
}

void take_nodes_of_group(MultigridOptions& options, std::span<const GroupOperand> all) {
  if (options.coordinates)
    options.coordinates =
        std::make_shared<const NodeCoordinates>(NodeCoordinates{options.coordinates->dimensions, of_group(all[0])});
  if (options.near_null_vectors)
    options.near_null_vectors =
        std::make_shared<const NearNullVectors>(NearNullVectors{options.near_null_vectors->count, of_group(all[1])});
}

void bring_own_nodes(MultigridOptions& options, const GroupMatrix& matrix) {
  const DistributedMatrix& of = matrix.matrix();
  if (of.y_rows()->route() == nullptr) return;
  if (options.coordinates) {
    const std::int64_t size = matrix.node_block_size();
    const int dimensions = options.coordinates->dimensions;
    const HostVector<double> mine =
        of.context().communicator().run_agreed([&] { return for_unknowns(options.coordinates->of_own, dimensions, size); });
    const HostVector<double> moved = brought(mine, dimensions, of);
    options.coordinates =
        std::make_shared<const NodeCoordinates>(NodeCoordinates{dimensions, for_nodes(moved, dimensions, size)});
  }
  if (options.near_null_vectors) {
    const int count = options.near_null_vectors->count;
    options.near_null_vectors = std::make_shared<const NearNullVectors>(
        NearNullVectors{count, brought(options.near_null_vectors->of_own, count, of)});
  }
}

}  // namespace shardmat
