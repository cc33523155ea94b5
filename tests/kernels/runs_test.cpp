// Formulas (1) to (8) of row block packing, on the paper's own example and figures, and the arrays to the byte.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/choose/registry.h"
#include "kernels/formats/rbp.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

/// The matrix of figure 2, a … l = 1 … 12.
HostCsr figure_2() {
  HostCsr m;
  m.rows = m.cols = 5;
  m.row_ptr = {0, 3, 6, 8, 10, 12};
  m.col_idx = {0, 1, 2, 1, 3, 4, 1, 2, 2, 3, 1, 4};
  m.values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  return m;
}

TEST(Runs, OfTheExample) {
  const Runs runs = find_runs(figure_2().view());
  const RunStatistics& s = runs.statistics;
  EXPECT_EQ(s.rows, 5);
  EXPECT_EQ(s.nnz, 12);
  EXPECT_EQ(s.singles, 3);  // d, k, l
  EXPECT_EQ(s.in_runs, 9);
  EXPECT_EQ(s.bounds, 8);
  EXPECT_EQ(s.max_row, 3);
  EXPECT_EQ(s.max_in_runs, 3);
  EXPECT_EQ(s.max_bounds, 2);
  EXPECT_EQ(csr_bytes(s), 8 * 12 + 4 * 12 + 4 * 6);
  EXPECT_EQ(ell_bytes(s), 8 * 15 + 4 * 15);
  EXPECT_EQ(ell_r_bytes(s), 8 * 15 + 4 * 15 + 4 * 5);
  EXPECT_EQ(rbp_csr_bytes(s), 12 * 6 + 4 * 8 + 8 * 9 + 4 * 3 + 8 * 3);
  EXPECT_EQ(rbp_ell_bytes(s), 8 * 15 + 4 * 10 + 8 * 3 + 4 * 3 + 4 * 6);
  EXPECT_EQ(rbp_ell_r_bytes(s), 8 * 15 + 4 * (10 + 5) + 8 * 3 + 4 * 3 + 4 * 6);
  EXPECT_FALSE(rbp_csr_saves(s));
  EXPECT_FALSE(rbp_ell_saves(s));
}

TEST(Runs, StopAtTheEndOfARow) {
  HostCsr m;  // the last column of a row and the first of the next are no run, nor is an empty row
  m.rows = 4, m.cols = 6;
  m.row_ptr = {0, 1, 2, 2, 6};
  m.col_idx = {0, 1, 0, 1, 4, 5};
  m.values = {1, 2, 3, 4, 5, 6};
  const RunStatistics s = find_runs(m.view()).statistics;
  EXPECT_EQ(s.singles, 2);
  EXPECT_EQ(s.in_runs, 4);
  EXPECT_EQ(s.bounds, 4);
  EXPECT_EQ(s.max_in_runs, 4);
  EXPECT_EQ(s.max_bounds, 4);
}

/// Conditions (7) and (8) say what the formulas say, and the stored arrays are as long as the formulas say.
TEST(Runs, ConditionsAndBytesAgree) {
  Stream stream({Backend::host, 0});
  int saving = 0, growing = 0;
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    SCOPED_TRACE(zoo.name);
    const RunStatistics s = find_runs(zoo.matrix.view()).statistics;
    EXPECT_EQ(rbp_csr_saves(s), rbp_csr_bytes(s) < csr_bytes(s));
    ++(rbp_csr_saves(s) ? saving : growing);
    EXPECT_EQ(rbp_ell_saves(s), rbp_ell_bytes(s) < ell_bytes(s));
    EXPECT_EQ(rbp_ell_saves(s), rbp_ell_r_bytes(s) < ell_r_bytes(s));
    ConversionInput input(zoo.matrix.view(), ValueType::f64, stream);
    const auto common = [](const RbpStorage& a) {
      return a.run_values.bytes() + a.run_bounds.bytes() + a.single_ptr.bytes() + a.single_columns.bytes() +
             a.single_values.bytes();
    };
    const auto csr = std::static_pointer_cast<RbpCsrStorage>(convert_rbp_csr(input, {}));
    EXPECT_EQ(common(*csr) + csr->value_ptr.bytes() + csr->bound_ptr.bytes(), static_cast<std::size_t>(rbp_csr_bytes(s)));
    if (s.rows * s.max_in_runs > 1 << 20) continue;
    const auto ell = std::static_pointer_cast<RbpEllStorage>(convert_rbp_ell(input, {}));
    EXPECT_EQ(common(*ell), static_cast<std::size_t>(rbp_ell_bytes(s)));
    const auto ell_r = std::static_pointer_cast<RbpEllStorage>(convert_rbp_ell_r(input, {}));
    EXPECT_EQ(common(*ell_r) + ell_r->lengths.bytes(), static_cast<std::size_t>(rbp_ell_r_bytes(s)));
  }
  EXPECT_GT(saving, 0);
  EXPECT_GT(growing, 0);
}

/// Table 2: N, N_z, N_non, K, K_v, K_c. All but parabolic_fem and thermal2 save memory; pwtk and UT-Heart2 as much as
/// reported.
TEST(Runs, TheMatricesOfThePaper) {
  struct Row {
    const char* name;
    std::int64_t n, nnz, singles, k, k_v, k_c;
  };
  const auto statistics = [](const Row& r) {
    RunStatistics s;
    s.rows = r.n, s.nnz = r.nnz, s.singles = r.singles, s.in_runs = r.nnz - r.singles;
    s.max_row = r.k, s.max_in_runs = r.k_v, s.max_bounds = r.k_c;
    return s;
  };
  const auto saved = [](std::int64_t packed, std::int64_t plain) {
    return 1 - static_cast<double>(packed) / static_cast<double>(plain);
  };
  const std::vector<Row> table{{"cant", 62451, 4007383, 39097, 40, 40, 16},
                               {"rma10", 46835, 2374001, 447, 145, 145, 40},
                               {"consph", 83334, 6010480, 30461, 78, 78, 38},
                               {"parabolic_fem", 525825, 3674625, 999115, 7, 6, 6},
                               {"pwtk", 217918, 11524432, 199, 90, 90, 18},
                               {"thermal2", 1228045, 8580313, 2846134, 11, 9, 8},
                               {"af_shell9", 504855, 17588845, 919, 30, 30, 10},
                               {"F1", 343791, 26837113, 46738, 378, 378, 150},
                               {"nd24k", 72000, 28715634, 441476, 483, 472, 114},
                               {"dielFilterV2real", 1157456, 48538952, 10631364, 99, 79, 48},
                               {"Cube_Coup_dt0", 2164760, 124406070, 125891, 52, 52, 23},
                               {"Bump_2911", 2911419, 127729899, 212859, 174, 174, 44},
                               {"Queen_4147", 4147110, 316548962, 228679, 63, 63, 35},
                               {"UT-Heart1", 82047, 3423519, 0, 63, 63, 40},
                               {"UT-Heart2", 130595, 6954413, 969595, 124, 111, 50}};
  for (const Row& row : table) {
    const std::string name = row.name;
    EXPECT_EQ(rbp_ell_saves(statistics(row)), name != "parabolic_fem" && name != "thermal2") << name;
  }
  const RunStatistics pwtk = statistics(table[4]), heart = statistics(table[14]);
  EXPECT_NEAR(saved(rbp_ell_bytes(pwtk), ell_bytes(pwtk)), 0.263, 0.0005);
  EXPECT_NEAR(saved(rbp_ell_r_bytes(pwtk), ell_r_bytes(pwtk)), 0.262, 0.0005);
  EXPECT_NEAR(saved(rbp_ell_bytes(heart), ell_bytes(heart)), 0.206, 0.0005);
  EXPECT_NEAR(saved(rbp_ell_r_bytes(heart), ell_r_bytes(heart)), 0.206, 0.0005);
}

}  // namespace
}  // namespace shardmat
