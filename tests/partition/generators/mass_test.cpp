#include <array>
#include <bit>

#include "tests/partition/generators/matrix_checks.h"

namespace shardmat {
namespace {

TEST(Mass, IsSoundAndSymmetric) {
  for (const char* specification :
       {"mass:n=4", "mass:nx=3,ny=2,nz=9,uniform", "mass:nx=9,ny=4,nz=3,clamp=0.3,stretch=2x1x0.1,seed=5", "mass:n=3,lumped",
        "mass:nx=7,ny=3,nz=4,lumped,clamp=0.2", "mass:n=3,clamp=1", "mass:nx=700,ny=2,nz=2,lumped",
        "mass:nx=700,ny=2,nz=2"}) {
    const auto source = make_generator(specification);
    expect_sound(*source);
    expect_symmetric(all_rows(*source));
  }
}

TEST(Mass, OfTheUnitCubeHasTheKnownEntries) {
  const HostCsr m = generate("mass:n=2,uniform");
  EXPECT_EQ(m.nnz(), 3 * 64);
  for (std::int64_t i = 0; i < 24; ++i)
    for (std::int64_t j = 0; j < 24; ++j) {
      const int steps = std::popcount(static_cast<unsigned>(i / 3 ^ j / 3));  // (1/3)^(3 - steps) (1/6)^steps
      EXPECT_NEAR(entry(m, i, j), i % 3 == j % 3 ? 1.0 / 27 / (1 << steps) : 0, 1e-16);
    }
}

TEST(Mass, OfEachComponentIsTheVolume) {
  for (const std::string keys :
       {"nx=5,ny=4,nz=6,uniform", "nx=5,ny=4,nz=6,stretch=2x1x0.5,uniform", "nx=5,ny=4,nz=6,seed=3,stretch=0.1"}) {
    const auto elastic = make_generator("elasticity:" + keys + ",nu=0"), mass = make_generator("mass:" + keys);
    EXPECT_EQ(mass->placed_nodes(), elastic->placed_nodes());
    const HostVector<double> xyz = mass->coordinates(0, mass->placed_nodes());
    EXPECT_EQ(xyz, elastic->coordinates(0, elastic->placed_nodes()));
    const bool uniform = keys.find("uniform") != std::string::npos;
    const double box = keys.find("2x1x0.5") != std::string::npos   ? 4 * 3 * 5
                       : keys.find("stretch") == std::string::npos ? 60
                                                                   : 6;
    double volume = box;
    if (!uniform) {  // by the divergence theorem over each face's two triangles, averaged over both diagonals
      volume = 0;
      const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::size_t d) {
        return xyz[static_cast<std::size_t>(3 * ((k * 4 + j) * 5 + i)) + d];
      };
      const auto tetrahedron = [&](const std::array<std::array<std::int64_t, 3>, 3>& p) {
        double x[3][3];
        for (std::size_t v = 0; v < 3; ++v)
          for (std::size_t d = 0; d < 3; ++d) x[v][d] = at(p[v][0], p[v][1], p[v][2], d);
        return (x[0][0] * (x[1][1] * x[2][2] - x[1][2] * x[2][1]) + x[0][1] * (x[1][2] * x[2][0] - x[1][0] * x[2][2]) +
                x[0][2] * (x[1][0] * x[2][1] - x[1][1] * x[2][0])) /
               6;
      };
      const std::int64_t last[3] = {4, 3, 5};
      for (std::size_t d = 0; d < 3; ++d)
        for (const std::int64_t side : {0, 1}) {
          const std::size_t u = (d + 1) % 3, v = (d + 2) % 3;
          for (std::int64_t a = 0; a < last[u]; ++a)
            for (std::int64_t b = 0; b < last[v]; ++b) {
              std::array<std::array<std::int64_t, 3>, 4> corner{};  // anticlockwise, seen along +d
              for (std::size_t c = 0; c < 4; ++c) {
                corner[c][d] = side * last[d];
                corner[c][u] = a + (c == 1 || c == 2);
                corner[c][v] = b + (c >= 2);
              }
              const double outward = side == 1 ? 0.5 : -0.5;
              for (std::size_t c = 0; c < 4; ++c)
                volume += outward * tetrahedron({corner[c], corner[(c + 1) % 4], corner[(c + 2) % 4]});
            }
        }
      EXPECT_NEAR(volume, box, 0.1 * box);
      EXPECT_GT(std::abs(volume - box), 1e-6);
    }
    const HostCsr consistent = all_rows(*mass), lumped = generate("mass:lumped," + keys);
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<double> one(xyz.size());
      for (std::size_t i = c; i < one.size(); i += 3) one[i] = 1;
      const std::vector<double> row_sums = multiply(consistent, one);
      EXPECT_NEAR(dot(one, row_sums), volume, 1e-12 * box) << keys;
      EXPECT_NEAR(dot(one, multiply(lumped, one)), volume, 1e-12 * box) << keys;
      for (std::size_t i = c; i < one.size(); i += 3) EXPECT_NEAR(lumped.values[i], row_sums[i], 1e-14 * box);
    }
    EXPECT_EQ(lumped.nnz(), lumped.rows);
  }
}

const std::string kMesh = "mesh=" SHARDMAT_TEST_DATA "/box.h5";  // the box [0, 8] x [0, 3] x [0, 3], points in f32

TEST(Mass, OfTetrahedraIsSoundSymmetricAndPositive) {
  for (const std::string keys : {"", ",degree=2", ",degree=2,order=random,seed=4", ",degree=2,clamp=0.1", ",clamp=0.3"}) {
    const auto source = make_generator("mass:" + kMesh + keys), diagonal = make_generator("mass:lumped," + kMesh + keys);
    expect_sound(*source);
    expect_sound(*diagonal);
    EXPECT_EQ(source->mid_edges(), make_generator("elasticity:" + kMesh + keys)->mid_edges());
    const HostCsr lumped = all_rows(*diagonal);
    HostCsr m = all_rows(*source);
    expect_symmetric(m);
    EXPECT_EQ(lumped.nnz(), lumped.rows);
    EXPECT_GT(*std::min_element(lumped.values.begin(), lumped.values.end()), 0);
    // The smallest eigenvalue of M with respect to its diagonal is 1/2 of linear, 0.3 of quadratic elements.
    const double least = keys.find("degree=2") == std::string::npos ? 0.5 : 0.3;
    std::vector<double> x(static_cast<std::size_t>(m.rows));
    for (const double frequency : {0.1, 1.0, 2.0, 3.1}) {
      double weight = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::sin(frequency * static_cast<double>(i));
        weight += x[i] * x[i] * entry(m, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i));
      }
      EXPECT_GT(dot(x, multiply(m, x)), 0.99 * least * weight) << keys << " " << frequency;
    }
  }
}

TEST(Mass, OfTetrahedraGivesTheIntegralsOfWhatTheElementsHold) {
  for (const std::string keys : {"", ",degree=2", ",degree=2,order=random"}) {
    const auto source = make_generator("mass:" + kMesh + keys);
    const HostVector<double> xyz = source->coordinates(0, source->placed_nodes());
    EXPECT_EQ(xyz, make_generator("elasticity:" + kMesh + keys)->coordinates(0, source->placed_nodes()));
    const HostCsr m = all_rows(*source), lumped = generate("mass:lumped," + kMesh + keys);
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<double> one(xyz.size()), x(xyz.size()), product(xyz.size());
      for (std::size_t i = 0; i < xyz.size(); i += 3) {
        one[i + c] = 1;
        x[i + c] = xyz[i];
        product[i + c] = xyz[i] * xyz[i + 1];
      }
      EXPECT_NEAR(dot(one, multiply(m, one)), 72, 1e-4);
      EXPECT_NEAR(dot(one, multiply(lumped, one)), 72, 1e-4);
      EXPECT_NEAR(dot(x, multiply(m, x)), 1536, 1e-3);   // ∫ x²
      EXPECT_NEAR(dot(one, multiply(m, x)), 288, 1e-3);  // ∫ x
      if (keys.empty()) continue;                        // linear elements do not hold x y
      EXPECT_NEAR(dot(product, multiply(m, product)), 4608, 1e-2);
      EXPECT_NEAR(dot(x, multiply(m, product)), 2304, 1e-2);  // ∫ x² y
    }
  }
}

TEST(Mass, OfTetrahedraClampsTheNodesThatElasticityClamps) {
  for (const std::string keys : {",clamp=0.2", ",degree=2,clamp=0.2,order=random", ",degree=2,clamp=0.2,lumped"}) {
    const HostCsr m = generate("mass:" + kMesh + keys),
                  free = generate("mass:" + kMesh + keys.substr(0, keys.find("clamp")) +
                                  "order=" + (keys.find("random") == std::string::npos ? "mesh" : "random") +
                                  (keys.find("lumped") == std::string::npos ? "" : ",lumped")),
                  elastic = generate("elasticity:" + kMesh + keys.substr(0, keys.find(",lumped")));
    ASSERT_EQ(m.rows, elastic.rows);
    std::int64_t count = 0;
    const auto clamped = [&](std::int64_t i) {
      return elastic.row_ptr[static_cast<std::size_t>(i) + 1] - elastic.row_ptr[static_cast<std::size_t>(i)] == 1;
    };
    for (std::int64_t i = 0; i < m.rows; ++i) {
      count += clamped(i);
      for (auto k = free.row_ptr[static_cast<std::size_t>(i)]; k < free.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
        const std::int64_t j = free.col_idx[static_cast<std::size_t>(k)];
        EXPECT_EQ(i % 3, j % 3);
        ASSERT_EQ(entry(m, i, j), clamped(i) || clamped(j) ? (i == j ? 1 : 0) : free.values[static_cast<std::size_t>(k)]);
      }
    }
    EXPECT_GT(count, 50);
    EXPECT_LE(m.nnz(), free.nnz());
  }
}

TEST(Mass, RefusesKeysOfGridsWithAMesh) {
  for (const char* key : {"n=4", "size=1x2x3", "stretch=2", "inclusions=5"})
    expect_contains(message_of(ErrorKind::usage, [&] { make_generator("mass:" + kMesh + "," + key); }),
                    "is for grids; leave it out with mesh=FILE");
  expect_contains(message_of(ErrorKind::usage, [] { make_generator("mass:degree=2"); }), "degree is for meshes");
}

TEST(Mass, IgnoresTheMaterial) {
  EXPECT_EQ(generate("mass:E=5,nu=0.4,seed=3," + kMesh).values, generate("mass:uniform," + kMesh).values);
  EXPECT_EQ(generate("mass:n=6,E=5,nu=0.4,inclusions=1e4,stretch=3").values, generate("mass:n=6,stretch=3").values);
  expect_contains(message_of(ErrorKind::usage, [] { make_generator("mass:nu=0.6"); }),
                  "nu must be a number from 0 to 0.4999");
}

TEST(Mass, ClampsTheNodesThatElasticityClamps) {
  for (const std::string lumped : {"", ",lumped"}) {
    const std::string keys = "nx=7,ny=3,nz=4,clamp=0.2,stretch=1x1x0.5";
    const HostCsr free = generate("mass:nx=7,ny=3,nz=4,stretch=1x1x0.5" + lumped), m = generate("mass:" + keys + lumped),
                  elastic = generate("elasticity:" + keys);
    const auto clamped = [&](std::int64_t i) {
      return elastic.row_ptr[static_cast<std::size_t>(i) + 1] - elastic.row_ptr[static_cast<std::size_t>(i)] == 1;
    };
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < m.rows; ++i) {
      count += clamped(i);
      for (std::int64_t j = 0; j < m.cols; ++j)
        ASSERT_EQ(entry(m, i, j), clamped(i) || clamped(j) ? (i == j ? 1 : 0) : entry(free, i, j));
    }
    EXPECT_EQ(count, 3 * 2 * 3 * 4);
  }
}

}  // namespace
}  // namespace shardmat
