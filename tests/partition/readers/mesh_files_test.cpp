// Nodes from the files of finite-element programs. tests/data/mesh has quadratic elements with straight edges: quadratic.frd
// is what CalculiX 2.20 made of quadratic.inp.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "partition/nodes/given_nodes.h"
#include "partition/nodes/mesh_file.h"
#include "partition/nodes/mid_edges.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::error_of;

const std::string kMeshes = SHARDMAT_TEST_DATA "/mesh/";

/// A matrix with ones on its diagonal.
std::unique_ptr<RowSource> diagonal(std::int64_t rows, std::shared_ptr<const UnknownList> unknowns = nullptr,
                                    const std::string& name = "none.mtx") {
  auto matrix = std::make_shared<HostCsr>();
  matrix->rows = matrix->cols = rows;
  for (std::int64_t i = 0; i < rows; ++i) matrix->col_idx.push_back(i), matrix->values.push_back(1);
  for (std::int64_t i = 0; i <= rows; ++i) matrix->row_ptr.push_back(i);
  return make_memory_source(matrix, name, std::move(unknowns));
}

/// Three unknowns for each of these nodes.
std::shared_ptr<UnknownList> unknowns_of(const std::vector<std::int64_t>& nodes) {
  auto list = std::make_shared<UnknownList>();
  for (const std::int64_t node : nodes)
    for (std::int64_t dof = 1; dof <= 3; ++dof) list->push_back({node, dof});
  return list;
}

class MeshFilesTest : public test::FilesTest {
 protected:
  std::string wrong(const std::string& name, const std::string& text, std::int64_t rows = 4, std::int64_t size = 1) const {
    const auto source = diagonal(rows);
    return error_of([&] { place_mesh(write(name, text).string(), *source, size); });
  }
};

/// Of the middles, which lie halfway between the ends, as edges are straight. `digits` of coordinates are exact.
void expect_halfway(const PlacedMesh& mesh, std::size_t count) {
  EXPECT_EQ(mesh.mid_edges.size(), count);
  for (const auto& [node, a, b] : mesh.mid_edges) {
    EXPECT_LT(a, b);
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto x = [&](std::int64_t i) { return mesh.coordinates[static_cast<std::size_t>(3 * i + k)]; };
      EXPECT_NEAR(x(node), (x(a) + x(b)) / 2, 1e-12) << node << " between " << a << " and " << b;
    }
  }
}

TEST_F(MeshFilesTest, MiddlesOfEdgesLieHalfway) {
  const std::size_t tetrahedron = 6, wedge = 9, hexahedron = 12, pyramid = 8;
  for (const char* name : {"quadratic.inp", "quadratic.frd"})
    expect_halfway(place_mesh(kMeshes + name, *diagonal(3 * 45), 3), tetrahedron + wedge + hexahedron);
  for (const char* name : {"elements.msh", "elements2.msh"})
    expect_halfway(place_mesh(kMeshes + name, *diagonal(58), 1), tetrahedron + wedge + hexahedron + pyramid);
  const auto a = place_mesh(kMeshes + "quadratic.inp", *diagonal(45), 1);
  const auto b = place_mesh(kMeshes + "quadratic.frd", *diagonal(45), 1);
  EXPECT_EQ(a.mid_edges, b.mid_edges);
  EXPECT_EQ(a.coordinates, b.coordinates);
  EXPECT_EQ(place_mesh(kMeshes + "elements.msh", *diagonal(58), 1).coordinates,
            place_mesh(kMeshes + "elements2.msh", *diagonal(58), 1).coordinates);
}

TEST_F(MeshFilesTest, RowsFindTheirNodes) {
  const std::string deck = kMeshes + "quadratic.inp";
  // 224 and 215 are ends, 364 is between them; 183 is another node.
  const PlacedMesh some = place_mesh(deck, *diagonal(12, unknowns_of({364, 224, 183, 215})), 3);
  EXPECT_EQ(some.coordinates, (HostVector<double>{11.5, 0, 0, 13, 0, 0, 0, 3, 4, 10, 0, 0}));
  EXPECT_EQ(some.mid_edges, (std::vector<MidEdge>{{0, 1, 3}}));
  EXPECT_EQ(some.near_null_count, 0);
  const std::string unknown = error_of([&] { place_mesh(deck, *diagonal(3, unknowns_of({7})), 3); });
  EXPECT_SAYS(unknown, "quadratic.inp: it has no node 7");
  EXPECT_SAYS(error_of([&] { place_mesh(deck, *diagonal(44), 1); }), "it has 45 nodes, but the matrix has 44",
              "none.mtx.dof");
  auto twice = unknowns_of({224, 224});
  EXPECT_SAYS(error_of([&] { place_mesh(deck, *diagonal(6, twice), 3); }), "of node 224 several times");
  write("k.mtx.dof", "215.1\n215.2\n224.1\n224.2\n");
  const PlacedMesh listed = place_mesh(deck, *diagonal(4, nullptr, path("k.mtx").string()), 2);
  EXPECT_EQ(listed.coordinates, (HostVector<double>{10, 0, 0, 13, 0, 0}));
  EXPECT_SAYS(error_of([&] { place_mesh(deck, *diagonal(6, nullptr, path("k.mtx").string()), 3); }), "4 unknowns");
}

/// What is missing of a node cannot be a row; then motions are made row by row.
TEST_F(MeshFilesTest, HeldUnknownsLeaveRigidMotions) {
  const std::vector<std::int64_t> nodes{364, 224, 183, 215, 30};
  auto list = unknowns_of(nodes);
  list->erase(list->begin() + 4);
  list->push_back({-5, 1});  // of Abaqus
  list->push_back({30, 5});
  const std::int64_t rows = std::ssize(*list);
  const PlacedMesh held = place_mesh(kMeshes + "quadratic.inp", *diagonal(rows, list), 1);
  EXPECT_TRUE(held.coordinates.empty());
  ASSERT_EQ(held.near_null_count, 6);
  const auto all = place_mesh(kMeshes + "quadratic.inp", *diagonal(15, unknowns_of(nodes)), 3).coordinates;
  std::map<std::int64_t, std::array<double, 3>> at;
  for (std::size_t i = 0; i < nodes.size(); ++i) at[nodes[i]] = {all[3 * i], all[3 * i + 1], all[3 * i + 2]};
  const auto value = [&](std::int64_t row, int mode) {
    return held.near_null_vectors[static_cast<std::size_t>(6 * row + mode)];
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto [node, dof] = (*list)[static_cast<std::size_t>(row)];
    for (int mode = 0; mode < 3; ++mode) EXPECT_EQ(value(row, mode), node > 0 && dof == mode + 1 ? 1 : 0);
  }
  // Rotations keep the distance of any two nodes: (u - v)·(p - q) = 0 where all three directions are rows.
  for (int mode = 3; mode < 6; ++mode) {
    double along = 0, length = 0;
    for (std::int64_t k = 0; k < 3; ++k) {  // nodes 364 and 183
      const auto axis = static_cast<std::size_t>(k);
      const double u = value(k, mode) - value(5 + k, mode);
      along += u * (at[364][axis] - at[183][axis]), length += std::abs(u);
    }
    EXPECT_NEAR(along, 0, 1e-12);
    EXPECT_GT(length, 1);
    EXPECT_EQ(value(rows - 1, mode), mode == 4 ? 1 : 0);
  }
  list->back().dof = 11;
  EXPECT_SAYS(error_of([&] { place_mesh(kMeshes + "quadratic.inp", *diagonal(rows, list), 1); }), "degree of freedom 11");
}

TEST_F(MeshFilesTest, InputFilesIncludeOthers) {
  write("more.inp", "4, 0, 0, 1\n** a comment\n*ELEMENT, TYPE=C3D4\n1, 1, 2, 3, 4\n");
  write("all.inp",
        "*HEADING\nnode 7, nothing\n*Include, input=\"some.inp\"\n*node, nset=A, input = more.inp\n*STEP\n1, 2, 3\n");
  write("some.inp", "*NODE,\n NSET=B\n1\n2, 1.\n3, 0., 1.D+0\n");
  const PlacedMesh mesh = place_mesh(path("all.inp").string(), *diagonal(4), 1);
  EXPECT_EQ(mesh.coordinates, (HostVector<double>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_TRUE(mesh.mid_edges.empty());
  EXPECT_SAYS(wrong("loop.inp", "*INCLUDE, INPUT=loop.inp\n"), "loop.inp:1: files include each other");
  EXPECT_SAYS(wrong("a.inp", "*INCLUDE, INPUT=none.inp\n"), "none.inp");
  EXPECT_SAYS(wrong("a.inp", "*NODE\n1, 0, 0\n*NODE, SYSTEM=C\n"), "a.inp:3: nodes in the system C");
  EXPECT_SAYS(wrong("a.inp", "*PART, NAME=A\n*NODE\n1, 0\n*PART, NAME=B\n"), "a.inp:4: there are several parts");
  EXPECT_SAYS(wrong("a.inp", "*NODE\n1, 0, x\n"), "a.inp:2: ");
  EXPECT_SAYS(wrong("a.inp", "*NODE\n1, 0\n1, 2\n"), "a.inp: node 1 comes twice");
  EXPECT_SAYS(wrong("a.inp", "*ELEMENT, TYPE=C3D10\n1, 2, 3,\n*NODE\n"), "a.inp:3: the last element has 2 nodes");
  EXPECT_SAYS(wrong("a.inp", "*HEADING\n"), "a.inp: it has no nodes");
}

TEST_F(MeshFilesTest, DamagedMeshes) {
  const std::string head = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n";
  EXPECT_SAYS(wrong("a.msh", "$MeshFormat\n4.1 1 8\n"), "a.msh:2: the file is binary");
  EXPECT_SAYS(wrong("a.msh", "$MeshFormat\n4.0 0 8\n"), "a.msh:2: version 4 is not read");
  EXPECT_SAYS(wrong("a.msh", head + "$Nodes\n1 4 1 4\n3 1 0 4\n1\n2\n"), "it is truncated");
  EXPECT_SAYS(wrong("a.msh", head + "$Nodes\n1 1 1 1\n3 1 0 1\n1\n0 0 z\n"), "a.msh:8: ");
  EXPECT_SAYS(wrong("a.msh", head + "$Elements\n1 1 1 1\n3 1 11 1\n1 1 2 3 4\n"), "a.msh:7: the line has 5 numbers");
  EXPECT_SAYS(wrong("a.frd", "    2C   \n"), "a.frd:1: it is written in binary form");
  const std::string nodes = "    2C" + std::string(67, ' ') + "1\n";
  EXPECT_SAYS(wrong("a.frd", nodes + " -1         1 0.00000E+00\n"), "a.frd:2: a node has three coordinates");
  EXPECT_SAYS(wrong("a.frd", nodes + " -1         x 0.00000E+00 0.00000E+00 0.00000E+00\n"), "a.frd:2: ");
  EXPECT_SAYS(wrong("a.frd", nodes + " -1         1 0.00000E+00 0.0000xE+00 0.00000E+00\n"), "a.frd:2: ");
}

TEST_F(MeshFilesTest, NumbersTouchInResultFiles) {
  write("a.frd", "    2C" + std::string(67, ' ') + "1\n -1         1-1.00000E+00-2.00000E+00-3.00000E+00\n -3\n");
  EXPECT_EQ(place_mesh(path("a.frd").string(), *diagonal(1), 1).coordinates, (HostVector<double>{-1, -2, -3}));
}

TEST_F(MeshFilesTest, ListsOfMidEdgeNodes) {
  const auto source = diagonal(12);
  const auto read = [&](const std::string& text) {
    return open_node_files({"", write("m.txt", text).string(), ""}, *source, 2)->mid_edges();
  };
  EXPECT_EQ(read("# node, ends\n5 1 0\n4, 3, 2\n"), (std::vector<MidEdge>{{4, 2, 3}, {5, 0, 1}}));
  for (const auto& [text, line, what] :
       std::vector<std::array<const char*, 3>>{{"4 0 1\n6 0 1\n", "2", "there is no node 6; they are 0 to 5"},
                                               {"4 0 -1\n", "1", "there is no node -1"},
                                               {"4 0 1\n4 2 1\n", "2", "node 4 comes twice"},
                                               {"4 0 1\n5 4 1\n", "2", "node 4 is the end of an edge"},
                                               {"4 1 1\n", "1", "both ends of the edge are node 1"},
                                               {"3 0 1\n4 0 1.5\n", "2", "1.5 is not the number of a node"}})
    EXPECT_SAYS(error_of([&] { read(text); }), std::string("m.txt, line ") + line + ": " + what);
  EXPECT_SAYS(error_of([&] { read("4 0\n"); }), "m.txt:1: the line has 2 numbers; it must have 3");
}

TEST_F(MeshFilesTest, CoordinatesAndVectorsFitTheMatrix) {
  const auto source = diagonal(4);
  const auto open = [&](const NodeFiles& files, std::int64_t size) { return open_node_files(files, *source, size); };
  const std::string plane = write("xy.txt", "1 2\n3 4\n").string(),
                    vectors = write("v.txt", "1 0\n0 1\n1 0\n0 1\n").string();
  const auto nodes = open({plane, "", vectors}, 2);
  EXPECT_EQ(nodes->placed_nodes(), 2);
  EXPECT_EQ(nodes->coordinates(1, 2), (HostVector<double>{3, 4, 0}));
  EXPECT_EQ(nodes->near_null_count(), 2);
  EXPECT_EQ(nodes->near_null_vectors(1, 3), (HostVector<double>{0, 1, 1, 0}));
  EXPECT_SAYS(error_of([&] {
                open({plane, "", ""}, 1);
              }),
              "xy.txt: it has 2 lines, but the matrix has 4 nodes of 1 unknown");
  EXPECT_SAYS(error_of([&] { open({write("x.txt", "1\n2\n").string(), "", ""}, 2); }), "x.txt: it has 1 column");
  EXPECT_SAYS(error_of([&] { open({"", "", plane}, 2); }), "xy.txt: it has 2 lines, but the matrix has 4 rows");
  EXPECT_SAYS(error_of([&] { open({write("n.txt", "1 2\n3 nan\n").string(), "", ""}, 2)->coordinates(0, 2); }), "n.txt");
}

}  // namespace
}  // namespace shardmat
