// Rows are made node by node: the rows of that node in the matrices of the elements around it, sorted by
// column with the elements in ascending order, so that A(i, j) and A(j, i) are the same sum.
#include "partition/generators/tetrahedra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "partition/generators/counter_random.h"
#include "partition/generators/mesh.h"

namespace shardmat {
namespace {

constexpr std::uint64_t kCoefficientStream = 2, kOrderStream = 3;

/// Marks the nodes in the first fraction of the longest axis of each connected body.
std::vector<bool> clamped_nodes(const TetNodes& nodes, double fraction) {
  std::vector<bool> clamped(static_cast<std::size_t>(nodes.count()));
  if (fraction == 0) return clamped;
  struct Extent {
    std::array<double, 3> least, most;
    std::size_t axis = 0;
    double limit = 0;
  };
  const std::vector<std::int32_t> body = nodes.bodies();
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const std::array<double, 3>& x = nodes.position(static_cast<std::int64_t>(i));
    const auto k = static_cast<std::size_t>(body[i]);
    if (k == extents.size()) extents.push_back({x, x});
    for (std::size_t d = 0; d < 3; ++d) {
      extents[k].least[d] = std::min(extents[k].least[d], x[d]);
      extents[k].most[d] = std::max(extents[k].most[d], x[d]);
    }
  }
  for (Extent& e : extents) {
    for (std::size_t d = 1; d < 3; ++d)
      if (e.most[d] - e.least[d] > e.most[e.axis] - e.least[e.axis]) e.axis = d;
    e.limit = e.least[e.axis] + fraction * (e.most[e.axis] - e.least[e.axis]);
  }
  for (std::size_t i = 0; i < clamped.size(); ++i) {
    const Extent& e = extents[static_cast<std::size_t>(body[i])];
    clamped[i] = nodes.position(static_cast<std::int64_t>(i))[e.axis] <= e.limit;
  }
  return clamped;
}

/// order[new] = old: a random permutation (Fisher and Yates).
std::vector<std::int32_t> random_order(std::int64_t count, std::uint64_t seed) {
  const CounterRandom random(seed, kOrderStream);
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1, i))]);
  return order;
}

template <class Physics, class Gradients>
class TetrahedraSource final : public GeneratedSource, public CellSource {
 public:
  TetrahedraSource(std::string name, TetMesh mesh, TetNodes nodes, const TetOptions& options, const Physics& physics)
      : GeneratedSource(std::move(name), nodes.count() * kUnknowns, nodes.count() * kUnknowns),
        path_(options.mesh),
        mesh_(std::move(mesh)),
        nodes_(std::move(nodes)),
        physics_(physics),
        diagonal_(options.diagonal),
        jitter_(options.jitter.uniform ? 0 : kElementJitter),
        coefficient_(options.jitter.seed, kCoefficientStream),
        clamped_(clamped_nodes(nodes_, options.clamp)) {
    if (!options.random_order) return;
    old_number_ = random_order(nodes_.count(), options.jitter.seed);
    new_number_.resize(old_number_.size());
    for (std::size_t i = 0; i < old_number_.size(); ++i)
      new_number_[static_cast<std::size_t>(old_number_[i])] = static_cast<std::int32_t>(i);
  }

  std::int64_t placed_nodes() const override { return nodes_.count(); }
  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const override {
    HostVector<double> all;
    all.reserve(static_cast<std::size_t>(3 * (end - begin)));
    for (std::int64_t node = begin; node < end; ++node)
      for (const double x : nodes_.position(old_number(node))) all.push_back(x);
    return all;
  }

  std::vector<std::array<std::int64_t, 3>> mid_edges() const override {
    std::vector<std::array<std::int64_t, 3>> middles;
    for (const auto& [node, a, b] : nodes_.mid_edges()) {
      const auto [smaller, larger] = std::minmax({new_number(a), new_number(b)});
      middles.push_back({new_number(node), smaller, larger});
    }
    std::sort(middles.begin(), middles.end());
    return middles;
  }
  MeshCells cells() const override {
    constexpr MeshElement kLinear{4, 4, ""}, kQuadratic{10, 4, "010203121323"};
    MeshCells cells;
    for (std::int64_t e = 0; e < std::ssize(mesh_.tetrahedra); ++e) {
      std::vector<std::int64_t> nodes;
      for (const std::int32_t node : nodes_.of_element(e)) nodes.push_back(new_number(node));
      add_cell(kNodes == 4 ? kLinear : kQuadratic, nodes, cells);
    }
    return cells;
  }

 protected:
  void count(std::int64_t begin, std::int64_t end, std::int64_t* lengths) const override {
    for_node_pieces(begin, end, kUnknowns, [&](std::int64_t first, std::int64_t last) {
      std::vector<std::int64_t> places;
      for (std::int64_t node = first; node < last; ++node) {
        std::int64_t length = 1;
        if (!is_clamped(node)) {
          gather(node, places);
          length = 0;
          for (std::size_t k = 0; k < places.size(); ++k)
            if (k == 0 || column(places[k]) != column(places[k - 1])) length += kCoupled;
        }
        const std::int64_t stop = std::min(end, (node + 1) * kUnknowns);
        for (std::int64_t row = std::max(begin, node * kUnknowns); row < stop; ++row) lengths[row - begin] = length;
      }
    });
  }

  void fill(std::int64_t begin, std::int64_t end, HostCsr& part) const override {
    for_node_pieces(begin, end, kUnknowns, [&](std::int64_t first, std::int64_t last) {
      Scratch scratch;
      for (std::int64_t node = first; node < last; ++node) {
        if (!is_clamped(node)) {
          gather(node, scratch.places);
          integrate(node, scratch.rows);
        }
        for (int i = 0; i < kUnknowns; ++i) {
          const std::int64_t row = node * kUnknowns + i - begin;
          if (row >= 0 && row < part.rows) write_row(node, i, scratch, part.row_ptr[static_cast<std::size_t>(row)], part);
        }
      }
    });
  }

 private:
  static constexpr int kUnknowns = Physics::kUnknowns;
  static constexpr int kCoupled = Physics::kCoupled;  ///< all of a node's unknowns, or the row's own component alone
  static constexpr int kNodes = Gradients::kNodes;
  static constexpr int kPlaceBits = 31;

  struct ElementRow {
    double at[kCoupled * kCoupled][kNodes];
  };
  struct Scratch {
    std::vector<std::int64_t> places;
    std::vector<ElementRow> rows;
  };

  /// A place is column · 2^31 + kNodes · (which of the elements around the node) + local node.
  static std::int64_t column(std::int64_t place) { return place >> kPlaceBits; }

  std::int64_t old_number(std::int64_t node) const {
    return old_number_.empty() ? node : old_number_[static_cast<std::size_t>(node)];
  }
  std::int64_t new_number(std::int64_t node) const {
    return new_number_.empty() ? node : new_number_[static_cast<std::size_t>(node)];
  }
  bool is_clamped(std::int64_t node) const { return clamped_[static_cast<std::size_t>(old_number(node))]; }

  /// Sorted places of all nodes that share an element with `node`, clamped ones left out; of the diagonal `node` alone.
  void gather(std::int64_t node, std::vector<std::int64_t>& places) const {
    places.clear();
    std::int64_t slot = 0;
    for (const std::int32_t element : nodes_.elements_of(old_number(node)))
      for (const std::int32_t other : nodes_.of_element(element)) {
        if (diagonal_ ? other == old_number(node) : !clamped_[static_cast<std::size_t>(other)])
          places.push_back((new_number(other) << kPlaceBits) + slot);
        ++slot;
      }
    std::sort(places.begin(), places.end());
  }

  /// The rows of `node` in the matrices of the elements around it.
  void integrate(std::int64_t node, std::vector<ElementRow>& rows) const {
    const auto elements = nodes_.elements_of(old_number(node));
    rows.resize(elements.size());
    for (std::size_t e = 0; e < elements.size(); ++e) {
      const auto own = nodes_.of_element(elements[e]);
      double corners[3][4];
      for (std::size_t v = 0; v < 4; ++v)
        for (std::size_t d = 0; d < 3; ++d) corners[d][v] = mesh_.points[static_cast<std::size_t>(own[v])][d];
      Gradients gradients;
      Physics::integrate(corners, gradients);
      const auto local = std::find(own.begin(), own.end(), old_number(node)) - own.begin();
      const double coefficient = 1 + jitter_ * coefficient_.symmetric(elements[e]);
      physics_.element_row(gradients, static_cast<int>(local), coefficient, rows[e].at);
    }
  }

  void write_row(std::int64_t node, int i, const Scratch& scratch, std::int64_t at, HostCsr& part) const {
    std::int64_t* columns = part.col_idx.data() + at;
    double* values = part.values.data() + at;
    if (is_clamped(node)) {
      *columns = node * kUnknowns + i;
      *values = 1;
      return;
    }
    for (std::size_t k = 0; k < scratch.places.size();) {
      const std::int64_t other = column(scratch.places[k]);
      double sum[kCoupled] = {};
      for (; k < scratch.places.size() && column(scratch.places[k]) == other; ++k) {
        const std::int64_t slot = scratch.places[k] & ((std::int64_t{1} << kPlaceBits) - 1);
        const ElementRow& row = scratch.rows[static_cast<std::size_t>(slot / kNodes)];
        for (int j = 0; j < kCoupled; ++j) sum[j] += row.at[kCoupled * (i % kCoupled) + j][slot % kNodes];
      }
      for (int j = 0; j < kCoupled; ++j) {
        if (!std::isfinite(sum[j])) fail_value(node, sum[j], scratch);
        *columns++ = other * kUnknowns + i / kCoupled * kCoupled + j;
        *values++ = sum[j];
      }
    }
  }

  /// Names the first tetrahedron around the node whose own entries are not finite, or the node if only their sum is not.
  [[noreturn]] void fail_value(std::int64_t node, double value, const Scratch& scratch) const {
    const auto elements = nodes_.elements_of(old_number(node));
    std::string place = fmt::format("row {}", node * kUnknowns);
    for (std::size_t e = elements.size(); e-- > 0;)
      for (const auto& entries : scratch.rows[e].at)
        for (const double entry : entries)
          if (!std::isfinite(entry)) place = fmt::format("tetrahedron {}", elements[e]);
    throw Error(ErrorKind::input,
                fmt::format("mesh {}: an assembled value of {} is {}: coordinates of this size cannot be computed with; "
                            "scale the points of the mesh",
                            path_, place, value));
  }

  std::string path_;
  TetMesh mesh_;
  TetNodes nodes_;
  Physics physics_;
  bool diagonal_;
  double jitter_;
  CounterRandom coefficient_;
  std::vector<bool> clamped_;             ///< by old number
  std::vector<std::int32_t> old_number_;  ///< empty: nodes keep their numbers
  std::vector<std::int32_t> new_number_;
};

}  // namespace

std::optional<TetOptions> tet_options_from(const Arguments& arguments) {
  if (!arguments.given("mesh")) {
    for (const char* key : {"degree", "order"})
      if (arguments.given(key)) arguments.refuse(fmt::format("{} is for meshes; give mesh=FILE too or leave it out", key));
    return std::nullopt;
  }
  for (const char* key : {"n", "nx", "ny", "nz", "size", "stretch", "inclusions"})
    if (arguments.given(key)) arguments.refuse(fmt::format("{} is for grids; leave it out with mesh=FILE", key));
  TetOptions options;
  options.mesh = arguments.text("mesh");
  options.degree = static_cast<int>(arguments.integer("degree", 1, 2));
  options.clamp = arguments.real("clamp", 0, 1);
  options.random_order = arguments.choice("order", {"mesh", "random"}) == "random";
  options.jitter = {arguments.flag("uniform"), arguments.seed()};
  return options;
}

template <class Physics>
std::unique_ptr<RowSource> make_tetrahedra_source(std::string name, const TetOptions& options, const Physics& physics) {
  TetMesh mesh = read_tet_mesh(options.mesh);
  TetNodes nodes(mesh, options.degree, options.mesh);
  if (options.degree == 1)
    return std::make_unique<TetrahedraSource<Physics, typename Physics::Tetrahedron4>>(std::move(name), std::move(mesh),
                                                                                       std::move(nodes), options, physics);
  return std::make_unique<TetrahedraSource<Physics, typename Physics::Tetrahedron10>>(std::move(name), std::move(mesh),
                                                                                      std::move(nodes), options, physics);
}

template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const Diffusion&);
template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const Elasticity&);
template std::unique_ptr<RowSource> make_tetrahedra_source(std::string, const TetOptions&, const TetMass&);

}  // namespace shardmat
