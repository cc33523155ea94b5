#include "partition/nodes/given_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/nodes/mid_edges.h"
#include "partition/vectors/vector_file.h"

namespace shardmat {
namespace {

constexpr const char* kCoordinates = "coordinates";
constexpr const char* kMidEdges = "mid_edges";
constexpr const char* kNearNullVectors = "near_null_vectors";

/// The setting of errors about a dataset.
const char* setting_of(const char* dataset) {
  return dataset == kMidEdges ? "mid_edge_nodes" : dataset == kNearNullVectors ? "near_null_space" : dataset;
}

[[noreturn]] void fail(const std::string& file, const std::string& what, const char* dataset) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", file, what), setting_of(dataset));
}

/// For people: lines count from 1, those with numbers alone.
std::string line_of(const std::string& file, std::int64_t row) { return fmt::format("{}, line {}", file, row + 1); }

/// Rows of a file with so many columns.
struct Table {
  std::string file;
  const char* dataset;  ///< where an HDF5 file names none
  VectorFile numbers;
  int columns;

  Table(const std::string& name, const char* what, int least, int most)
      : file(name), dataset(what), numbers(name, what, least == most ? least : VectorFile::kAsStored) {
    if (numbers.columns() < least || numbers.columns() > most)
      fail(file, fmt::format("it has {}; it must have {} to {}", human_count(numbers.columns(), "column"), least, most),
           what);
    columns = static_cast<int>(numbers.columns());
  }

  HostVector<double> read(std::int64_t begin, std::int64_t end) const {
    HostVector<double> values = numbers.read(begin, end);
    const auto wrong = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    if (wrong != values.end())
      fail(line_of(file, begin + (wrong - values.begin()) / columns), fmt::format("{} is no number", *wrong), dataset);
    return values;
  }
};

std::vector<MidEdge> read_mid_edges(const std::string& file, std::int64_t nodes) {
  const Table table(file, kMidEdges, 3, 3);
  require_host_memory(80 * table.numbers.size(), file.c_str());
  std::vector<MidEdge> list;
  constexpr std::int64_t kSlice = 1 << 16;
  for (std::int64_t begin = 0; begin < table.numbers.size(); begin += kSlice) {
    const auto values = table.read(begin, std::min(table.numbers.size(), begin + kSlice));
    for (std::size_t i = 0; i < values.size(); i += 3) {
      MidEdge edge;
      for (std::size_t k = 0; k < 3; ++k) {
        constexpr double kMost = 9e15;  // whole numbers up to here are exact
        if (values[i + k] != std::floor(values[i + k]) || std::abs(values[i + k]) > kMost)
          fail(line_of(file, std::ssize(list)), fmt::format("{} is not the number of a node", values[i + k]), kMidEdges);
        edge[k] = static_cast<std::int64_t>(values[i + k]);
      }
      list.push_back(edge);
    }
  }
  return checked_mid_edges(std::move(list), nodes, [&](std::int64_t i) { return line_of(file, i); });
}

class GivenNodes final : public NodeFacts {
 public:
  GivenNodes(const NodeFiles& files, const RowSource& source, std::int64_t size, std::optional<PlacedMesh> mesh)
      : source_(source), mesh_(std::move(mesh)) {
    const std::int64_t nodes = source.rows() / size;
    if (const std::string& file = files.coordinates; !file.empty() && !mesh_) {
      coordinates_.emplace(file, kCoordinates, 2, kDimensions + kAxes);
      if (coordinates_->columns > kDimensions && coordinates_->columns != kDimensions + kAxes)
        fail(file,
             fmt::format("it has {} columns; a node has 2 or 3 coordinates, or 3 and its three axes: 12 numbers",
                         coordinates_->columns),
             kCoordinates);
      if (coordinates_->numbers.size() != nodes)
        fail(file,
             fmt::format("it has {} lines, but the matrix has {} nodes of {} unknown{}", coordinates_->numbers.size(), nodes,
                         size, size == 1 ? "" : "s"),
             kCoordinates);
    }
    if (!files.mid_edges.empty()) mid_edges_ = read_mid_edges(files.mid_edges, nodes);
    if (const std::string& file = files.near_null_vectors; !file.empty()) {
      near_null_.emplace(file, kNearNullVectors, 1, kMostVectors);
      if (near_null_->numbers.size() != source.rows())
        fail(file, fmt::format("it has {} lines, but the matrix has {} rows", near_null_->numbers.size(), source.rows()),
             kNearNullVectors);
    }
  }

  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const override {
    if (mesh_) return {mesh_->coordinates.begin() + kDimensions * begin, mesh_->coordinates.begin() + kDimensions * end};
    if (!coordinates_) return source_.coordinates(begin, end);
    HostVector<double> values = coordinates_->read(begin, end);
    if (coordinates_->columns == kDimensions) return values;
    HostVector<double> in_space;
    for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(coordinates_->columns))
      in_space.insert(in_space.end(), {values[i], values[i + 1], has_axes() ? values[i + 2] : 0.0});
    return in_space;
  }
  bool has_axes() const override {
    if (mesh_) return false;
    return coordinates_ ? coordinates_->columns == kDimensions + kAxes : source_.has_axes();
  }
  HostVector<double> axes(std::int64_t begin, std::int64_t end) const override {
    if (!has_axes()) return {};
    if (!coordinates_) return source_.axes(begin, end);
    const HostVector<double> values = coordinates_->read(begin, end);
    HostVector<double> all;
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double* const of_node = &values[static_cast<std::size_t>(i * (kDimensions + kAxes) + kDimensions)];
      if (!are_axes(of_node))
        fail(line_of(coordinates_->file, begin + i), "the axes of the node are not of length 1 and at right angles",
             kCoordinates);
      all.insert(all.end(), of_node, of_node + kAxes);
    }
    return all;
  }
  std::int64_t placed_nodes() const override {
    if (mesh_) return std::ssize(mesh_->coordinates) / kDimensions;
    return coordinates_ ? coordinates_->numbers.size() : source_.placed_nodes();
  }
  std::vector<MidEdge> mid_edges() const override {
    return mid_edges_ ? *mid_edges_ : mesh_ ? mesh_->mid_edges : source_.mid_edges();
  }
  int near_null_count() const override {
    return near_null_ ? near_null_->columns : mesh_ ? mesh_->near_null_count : source_.near_null_count();
  }
  HostVector<double> near_null_vectors(std::int64_t begin, std::int64_t end) const override {
    if (near_null_) return near_null_->read(begin, end);
    if (!mesh_) return source_.near_null_vectors(begin, end);
    const auto first = mesh_->near_null_vectors.begin();
    return {first + mesh_->near_null_count * begin, first + mesh_->near_null_count * end};
  }
  std::shared_ptr<const UnknownList> unknowns() const override { return source_.unknowns(); }

 private:
  const RowSource& source_;
  std::optional<PlacedMesh> mesh_;
  std::optional<Table> coordinates_, near_null_;
  std::optional<std::vector<MidEdge>> mid_edges_;
};

}  // namespace

bool are_axes(const double* numbers) {
  constexpr double kDigits = 1e-5;
  bool all = true;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j) {
      double product = 0;
      for (int k = 0; k < 3; ++k) product += numbers[3 * i + k] * numbers[3 * j + k];
      all = all && std::abs(product - (i == j ? 1 : 0)) <= kDigits;
    }
  return all;
}

std::vector<Hdf5Input> NodeFiles::hdf5_inputs() const {
  std::vector<Hdf5Input> inputs;
  for (const auto& [file, dataset] : {std::pair(&coordinates, kCoordinates), std::pair(&mid_edges, kMidEdges),
                                      std::pair(&near_null_vectors, kNearNullVectors)})
    if (const auto input = VectorFile::hdf5_input(*file, dataset)) inputs.push_back(*input);
  return inputs;
}

std::unique_ptr<NodeFacts> open_node_files(const NodeFiles& files, const RowSource& source, std::int64_t node_block_size,
                                           std::optional<PlacedMesh> mesh) {
  if (!mesh && is_mesh_file(files.coordinates)) mesh = place_mesh(files.coordinates, source, node_block_size);
  return std::make_unique<GivenNodes>(files, source, node_block_size, std::move(mesh));
}

}  // namespace shardmat
