#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "partition/generators/elements.h"
#include "partition/generators/mesh.h"
#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

using Point = std::array<double, 3>;

const std::string kBox = SHARDMAT_TEST_DATA "/box.h5";  // 144 points, 432 tetrahedra, half of them inverted

/// A file of its own for each test, removed at its end.
class MeshFile {
 public:
  MeshFile()
      : path_((std::filesystem::temp_directory_path() /
               (std::string("shardmat-") + std::to_string(::getpid()) + "-" +
                testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5"))
                  .string()) {}
  ~MeshFile() { std::filesystem::remove(path_); }
  MeshFile(const MeshFile&) = delete;
  MeshFile& operator=(const MeshFile&) = delete;

  const std::string& path() const { return path_; }

  MeshFile& write(const std::vector<Point>& points, const std::vector<std::array<std::int64_t, 4>>& tetrahedra) {
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put(file, "/points", H5T_NATIVE_DOUBLE, points.data(), points.size(), 3);
    put(file, "/tetrahedra", H5T_NATIVE_INT64, tetrahedra.data(), tetrahedra.size(), 4);
    H5Fclose(file);
    return *this;
  }
  static void put(hid_t file, const char* name, hid_t type, const void* data, std::size_t rows, hsize_t width) {
    const hsize_t shape[2] = {rows, width};
    const hid_t space = H5Screate_simple(2, shape, nullptr);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (rows > 0) H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(dataset);
    H5Sclose(space);
  }

 private:
  std::string path_;
};

const std::vector<Point> kCorners = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}};

std::string mesh_error(const std::string& path) {
  return message_of(ErrorKind::input, [&] { make_generator("poisson:mesh=" + path); });
}

TetNodes box_nodes(int degree) { return TetNodes(read_tet_mesh(kBox), degree, kBox); }

/// True if the node is on the surface of the box [0, 8] x [0, 3] x [0, 3].
bool on_surface(const Point& p) { return p[0] == 0 || p[0] == 8 || p[1] == 0 || p[1] == 3 || p[2] == 0 || p[2] == 3; }

TEST(Tetrahedra, AreSoundAndSymmetric) {
  for (const char* name : {"poisson", "elasticity"})
    for (const char* options : {"", ",degree=2", ",degree=2,order=random", ",clamp=0.1,seed=5",
                                ",degree=2,clamp=0.2,uniform", ",order=random,clamp=0.3"}) {
      const auto source = make_generator(std::string(name) + ":mesh=" + kBox + options);
      expect_sound(*source);
      expect_symmetric(all_rows(*source));
    }
}

TEST(Tetrahedra, CouplesTheNodesOfEachElement) {
  for (const int degree : {1, 2}) {
    const TetNodes nodes = box_nodes(degree);
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::int64_t t = 0; t < 432; ++t)
      for (const std::int32_t a : nodes.of_element(t))
        for (const std::int32_t b : nodes.of_element(t)) pairs.emplace(a, b);
    const HostCsr m = generate("elasticity:mesh=" + kBox + ",degree=" + std::to_string(degree));
    EXPECT_EQ(m.rows, 3 * nodes.count());
    EXPECT_EQ(m.nnz(), 9 * static_cast<std::int64_t>(pairs.size()));
  }
}

TEST(Tetrahedra, MidEdgeNodesAreSortedByTheirVertices) {
  const TetMesh mesh = read_tet_mesh(kBox);
  const TetNodes nodes(mesh, 2, kBox);
  constexpr std::size_t kEdges[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> edges;
  for (std::size_t t = 0; t < mesh.tetrahedra.size(); ++t) {
    const auto own = nodes.of_element(static_cast<std::int64_t>(t));
    ASSERT_TRUE(std::equal(own.begin(), own.begin() + 4, mesh.tetrahedra[t].begin()));
    for (std::size_t e = 0; e < 6; ++e) {
      const std::pair<std::int32_t, std::int32_t> edge = std::minmax(own[kEdges[e][0]], own[kEdges[e][1]]);
      const auto known = edges.emplace(edge, own[4 + e]).first;
      ASSERT_EQ(known->second, own[4 + e]);
    }
  }
  auto expected = static_cast<std::int32_t>(mesh.points.size());
  for (const auto& [edge, node] : edges) {  // the map is sorted by (smaller, larger)
    EXPECT_EQ(node, expected++);
    for (std::size_t d = 0; d < 3; ++d)
      EXPECT_EQ(nodes.position(node)[d], (nodes.position(edge.first)[d] + nodes.position(edge.second)[d]) / 2);
  }
  EXPECT_EQ(expected, nodes.count());
}

TEST(Tetrahedra, SourceNamesItsMidEdgeNodes) {
  for (const char* order : {"mesh", "random"}) {
    const auto source = make_generator("elasticity:degree=2,mesh=" + kBox + ",order=" + order);
    const HostVector<double> xyz = source->coordinates(0, source->placed_nodes());
    const auto middles = source->mid_edges();
    const std::int64_t vertices = 144;
    ASSERT_EQ(std::ssize(middles), source->placed_nodes() - vertices);
    std::set<std::int64_t> nodes, ends;
    std::set<std::pair<std::int64_t, std::int64_t>> edges;
    std::int64_t last = -1;
    for (const auto& [node, a, b] : middles) {
      EXPECT_GT(node, last);
      last = node;
      EXPECT_LT(a, b);
      nodes.insert(node);
      ends.insert({a, b});
      edges.emplace(a, b);
      for (std::size_t d = 0; d < 3; ++d)
        EXPECT_EQ(xyz[static_cast<std::size_t>(3 * node) + d],
                  (xyz[static_cast<std::size_t>(3 * a) + d] + xyz[static_cast<std::size_t>(3 * b) + d]) / 2);
    }
    EXPECT_EQ(edges.size(), middles.size());
    EXPECT_EQ(std::ssize(ends), vertices);  // and all others are middles
    for (const std::int64_t end : ends) EXPECT_EQ(nodes.count(end), 0u);
    if (order == std::string("mesh")) {
      EXPECT_EQ(middles.front()[0], vertices);
    }
  }
  EXPECT_TRUE(make_generator("elasticity:mesh=" + kBox)->mid_edges().empty());
  EXPECT_TRUE(make_generator("elasticity:n=3")->mid_edges().empty());
}

TEST(Tetrahedra, PatchTestOfPoisson) {
  // A linear field on a uniform medium needs no source inside; a quadratic one, exact for degree 2, a
  // constant source.
  for (const int degree : {1, 2}) {
    const TetNodes nodes = box_nodes(degree);
    const HostCsr m = generate("poisson:mesh=" + kBox + ",uniform,degree=" + std::to_string(degree));
    std::vector<double> linear(static_cast<std::size_t>(m.rows)), one(linear.size(), 1), quadratic(linear.size());
    for (std::size_t i = 0; i < linear.size(); ++i) {
      const Point& p = nodes.position(static_cast<std::int64_t>(i));
      linear[i] = 1 + 2 * p[0] - 3 * p[1] + 0.5 * p[2];
      quadratic[i] = p[0] * p[0] - p[1] * p[1] + p[0] * p[2];  // harmonic
    }
    EXPECT_LT(largest(multiply(m, one)), 1e-12);
    EXPECT_NEAR(dot(linear, multiply(m, linear)), 72 * (4 + 9 + 0.25),
                1e-4);  // volume times |gradient|²; f32 points
    const std::vector<double> source = multiply(m, degree == 1 ? linear : quadratic);
    bool inside = false;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (on_surface(nodes.position(static_cast<std::int64_t>(i)))) continue;
      inside = true;
      EXPECT_NEAR(source[i], 0, 1e-12);
    }
    EXPECT_TRUE(inside);
  }
}

TEST(Tetrahedra, PatchTestOfElasticity) {
  for (const int degree : {1, 2}) {
    const TetNodes nodes = box_nodes(degree);
    const HostCsr m = generate("elasticity:mesh=" + kBox + ",uniform,degree=" + std::to_string(degree));
    std::vector<double> u(static_cast<std::size_t>(m.rows));
    for (std::size_t i = 0; i < u.size() / 3; ++i) {
      const Point& p = nodes.position(static_cast<std::int64_t>(i));
      u[3 * i] = 0.3 * p[0] + 0.1 * p[1] - 0.2 * p[2];
      u[3 * i + 1] = -0.4 * p[1] + 0.7 * p[0];
      u[3 * i + 2] = 0.2 * p[2] + 0.5 * p[1];
    }
    const std::vector<double> force = multiply(m, u);
    for (std::size_t i = 0; i < u.size(); ++i)
      if (!on_surface(nodes.position(static_cast<std::int64_t>(i / 3)))) {
        EXPECT_NEAR(force[i], 0, 1e-12);
      }
    const double lambda = 0.3 / (1.3 * 0.4), mu = 1 / 2.6;  // energy density λ tr² + 2μ |ε|²
    const double strain = 0.09 + 0.16 + 0.04 + 2 * (0.4 * 0.4 + 0.1 * 0.1 + 0.25 * 0.25);
    EXPECT_NEAR(dot(u, force), 72 * (lambda * 0.01 + 2 * mu * strain), 1e-4);
  }
}

TEST(Tetrahedra, ElasticityAnnihilatesTheSixRigidMotionsOnly) {
  for (const int degree : {1, 2}) {  // jittered coefficients: nodes stay in place
    const TetNodes nodes = box_nodes(degree);
    const HostCsr m = generate("elasticity:mesh=" + kBox + ",degree=" + std::to_string(degree));
    for (std::size_t kind = 0; kind < 9; ++kind) {
      std::vector<double> u(static_cast<std::size_t>(m.rows));
      for (std::size_t i = 0; i < u.size() / 3; ++i) {
        const Point& p = nodes.position(static_cast<std::int64_t>(i));
        const std::size_t c = kind % 3, d = (c + 1) % 3;
        u[3 * i + c] = kind < 3 ? 1 : -p[d];
        if (kind >= 3) u[3 * i + d] = kind < 6 ? p[c] : -p[c];
      }
      if (kind < 6) {
        EXPECT_LT(largest(multiply(m, u)), 1e-12);
      } else {
        EXPECT_GT(dot(u, multiply(m, u)), 1);
      }
    }
  }
}

TEST(Tetrahedra, LinearElementHasTheKnownEntries) {
  MeshFile file;
  file.write(kCorners, {{0, 1, 2, 3}, {1, 2, 3, 4}});
  const HostCsr m = generate("poisson:uniform,mesh=" + file.path());
  EXPECT_NEAR(entry(m, 0, 0), 0.5, 1e-15);  // the corner of the unit simplex: 3 · V, V = 1/6
  EXPECT_NEAR(entry(m, 0, 1), -1.0 / 6, 1e-15);
  EXPECT_EQ(entry(m, 0, 4), 0);
  EXPECT_EQ(m.nnz(), 25 - 2);
}

TEST(Tetrahedra, InvertedTetrahedraGiveTheSameMatrix) {
  MeshFile file;
  const HostCsr right = generate("elasticity:degree=2,mesh=" + file.write(kCorners, {{0, 1, 2, 3}, {1, 2, 3, 4}}).path());
  const HostCsr turned = generate("elasticity:degree=2,mesh=" + file.write(kCorners, {{1, 0, 2, 3}, {2, 1, 3, 4}}).path());
  ASSERT_EQ(right.col_idx, turned.col_idx);
  for (std::size_t k = 0; k < right.values.size(); ++k) EXPECT_NEAR(right.values[k], turned.values[k], 1e-14);
}

TEST(Tetrahedra, RandomOrderIsAPermutationOfTheSameMatrix) {
  const HostCsr m = generate("poisson:mesh=" + kBox + ",degree=2"),
                r = generate("poisson:mesh=" + kBox + ",degree=2,order=random");
  EXPECT_NE(m.col_idx, r.col_idx);
  auto a = m.values, b = r.values;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  EXPECT_EQ(a, b);
}

TEST(Tetrahedra, ClampMakesIdentityRowsAndColumns) {
  const TetNodes nodes = box_nodes(2);
  const HostCsr free = generate("elasticity:degree=2,mesh=" + kBox),
                m = generate("elasticity:degree=2,clamp=0.1,mesh=" + kBox);
  const auto clamped = [&](std::int64_t row) { return nodes.position(row / 3)[0] <= 0.1 * 8; };
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (auto k = free.row_ptr[static_cast<std::size_t>(i)]; k < free.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
      const std::int64_t j = free.col_idx[static_cast<std::size_t>(k)];
      const bool kept = !clamped(i) && !clamped(j);
      expected += kept || i == j;
      ASSERT_EQ(entry(m, i, j), kept ? free.values[static_cast<std::size_t>(k)] : i == j ? 1 : 0);
    }
  EXPECT_EQ(m.nnz(), expected);
  EXPECT_LT(m.nnz(), free.nnz());
}

/// A row of tetrahedra from `at` along an axis, each with one point more than the one before.
void add_bar(const Point& at, std::size_t axis, std::size_t count, std::vector<Point>& points,
             std::vector<std::array<std::int64_t, 4>>& tetrahedra) {
  const auto first = static_cast<std::int64_t>(points.size());
  for (std::size_t i = 0; i < count + 3; ++i) {  // a helix
    Point p = at;
    p[axis] += static_cast<double>(i);
    p[(axis + 1) % 3] += i % 3 == 1;
    p[(axis + 2) % 3] += i % 3 == 2;
    points.push_back(p);
  }
  for (auto i = first; i < first + static_cast<std::int64_t>(count); ++i) tetrahedra.push_back({i, i + 1, i + 2, i + 3});
}

TEST(Tetrahedra, ClampHoldsEachConnectedBody) {
  MeshFile file;
  std::vector<Point> points;
  std::vector<std::array<std::int64_t, 4>> tetrahedra;
  add_bar({0, 0, 0}, 0, 8, points, tetrahedra);    // x from 0 to 10
  add_bar({50, 7, 3}, 1, 18, points, tetrahedra);  // y from 7 to 27, beyond the first bar's end
  std::reverse(tetrahedra.begin(), tetrahedra.end());
  file.write(points, tetrahedra);
  for (const char* options : {"", ",degree=2", ",degree=2,order=random", ",order=random"}) {
    const auto source = make_generator("elasticity:clamp=0.2,mesh=" + file.path() + options);
    const HostVector<double> xyz = source->coordinates(0, source->placed_nodes());
    const HostVector<std::int64_t> lengths = source->row_lengths(0, source->rows());
    std::int64_t clamped[2] = {};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const double* x = &xyz[i / 3 * 3];
      const bool second = x[0] > 20, held = second ? x[1] <= 7 + 0.2 * 20 : x[0] <= 0.2 * 10;
      EXPECT_EQ(lengths[i] == 1, held) << options << " row " << i;
      clamped[second] += held;
    }
    EXPECT_GE(clamped[0], 9);
    EXPECT_GE(clamped[1], 15);
    const HostCsr m = all_rows(*source);
    // No motion of a body is free.
    for (std::size_t kind = 0; kind < 6; ++kind)
      for (const bool second : {false, true}) {
        std::vector<double> u(static_cast<std::size_t>(m.rows));
        for (std::size_t i = 0; i < u.size() / 3; ++i) {
          const std::size_t c = kind % 3, d = (c + 1) % 3;
          if ((xyz[3 * i] > 20) != second) continue;
          u[3 * i + c] = kind < 3 ? 1 : -xyz[3 * i + d];
          if (kind >= 3) u[3 * i + d] = xyz[3 * i + c];
        }
        EXPECT_GT(dot(u, multiply(m, u)), 0.1) << options << " " << kind;
      }
  }
}

TEST(Mesh, BodiesAreWhatSharesNodes) {
  const TetMesh two{std::vector<Point>(9), {{8, 1, 6, 3}, {0, 2, 4, 5}, {3, 7, 6, 1}}};
  EXPECT_EQ(TetNodes(two, 1, "").bodies(), (std::vector<std::int32_t>{0, 1, 0, 1, 0, 0, 1, 1, 1}));
  const TetMesh chain{std::vector<Point>(8), {{0, 1, 2, 3}, {4, 5, 6, 7}, {3, 2, 5, 4}}};
  EXPECT_EQ(TetNodes(chain, 1, "").bodies(), std::vector<std::int32_t>(8));
  EXPECT_EQ(box_nodes(2).bodies(), std::vector<std::int32_t>(static_cast<std::size_t>(box_nodes(2).count())));
}

TEST(Mesh, RefusesCoordinatesThatCannotBeComputedWith) {
  MeshFile file;
  for (const double scale : {1e300, 1e-200})
    for (const char* name : {"poisson:mesh=", "elasticity:degree=2,mesh=", "mass:mesh=", "mass:lumped,degree=2,mesh="}) {
      std::vector<Point> points = kCorners;
      for (Point& point : points)
        for (double& x : point) x *= scale;
      file.write(points, {{0, 1, 2, 3}, {1, 2, 3, 4}});
      const auto source = make_generator(name + file.path());
      expect_contains(message_of(ErrorKind::input, [&] { all_rows(*source); }), "mesh " + file.path());
      expect_contains(message_of(ErrorKind::input, [&] { all_rows(*source); }), "tetrahedron ");
      expect_contains(message_of(ErrorKind::input, [&] { all_rows(*source); }), "scale the points");
    }
}

TEST(Mesh, RefusesWhatIsNoMesh) {
  MeshFile file;
  expect_contains(mesh_error("/nowhere/part.h5"), "mesh /nowhere/part.h5: there is no such file");
  std::ofstream(file.path()) << "$MeshFormat\n";
  expect_contains(mesh_error(file.path()), "cannot open it as an HDF5 file");
  const hid_t bare = H5Fcreate(file.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  MeshFile::put(bare, "/points", H5T_NATIVE_DOUBLE, kCorners.data(), kCorners.size(), 3);
  H5Fclose(bare);
  expect_contains(mesh_error(file.path()), "there is no dataset /tetrahedra");
  const hid_t swapped = H5Fcreate(file.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::vector<std::int64_t> numbers(12);
  MeshFile::put(swapped, "/points", H5T_NATIVE_INT64, numbers.data(), 4, 3);
  H5Fclose(swapped);
  expect_contains(mesh_error(file.path()), "/points must hold floating-point numbers");
  const hid_t wide = H5Fcreate(file.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  MeshFile::put(wide, "/points", H5T_NATIVE_DOUBLE, kCorners.data(), 7, 2);
  H5Fclose(wide);
  expect_contains(mesh_error(file.path()), "/points must have the shape [count, 3]");
}

TEST(Mesh, NamesTheWrongTetrahedronOrPoint) {
  MeshFile file;
  const auto error_of = [&](const std::vector<Point>& points, const std::vector<std::array<std::int64_t, 4>>& tetrahedra) {
    return mesh_error(file.write(points, tetrahedra).path());
  };
  expect_contains(error_of(kCorners, {{0, 1, 2, 3}, {1, 2, 3, 5}}),
                  "tetrahedron 1 has the vertex 5, but the points are numbered 0 to 4");
  expect_contains(error_of(kCorners, {{0, 1, 2, -1}}), "tetrahedron 0 has the vertex -1");
  expect_contains(error_of(kCorners, {{0, 1, 2, 3}, {1, 2, 4, 4}}), "tetrahedron 1 (vertices 1, 2, 4, 4) has no volume");
  expect_contains(error_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}}, {{0, 1, 2, 3}}),
                  "tetrahedron 0 (vertices 0, 1, 2, 3) has no volume");
  expect_contains(error_of(kCorners, {{0, 1, 2, 3}}), "point 4 belongs to no tetrahedron");
  expect_contains(error_of({{0, 0, 0}, {1, 0, 0}, {0, std::nan(""), 0}, {1, 1, 0}}, {{0, 1, 2, 3}}),
                  "point 2 has a coordinate that is not finite");
  expect_contains(error_of(kCorners, {}), "/tetrahedra is empty");
}

}  // namespace
}  // namespace shardmat
