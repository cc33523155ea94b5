#include <gtest/gtest.h>

#include <fmt/format.h>

#include <vector>

#include "partition/readers/reader.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;

const std::string kTitle = "Title                                                                   KEY\n";
const std::string kFormats = "(40I2)          (40I2)          (3E25.16)           \n";  // as SciPy chooses

class HarwellBoeingTest : public test::FilesTest {
 protected:
  static std::string header(const std::string& type, const std::string& sizes, const std::string& formats = kFormats) {
    return kTitle + "             4             1             1             2             0\n" + type + "           " +
           sizes + "\n" + formats;
  }
  /// Values in fields of (3E25.16).
  static std::string values(const std::vector<double>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      text += fmt::format("{:25.16E}{}", numbers[i], i % 3 == 2 || i + 1 == numbers.size() ? "\n" : "");
    return text;
  }
  HostCsr read(const std::string& bytes) const { return read_matrix(write("a.rb", bytes)); }
  std::string error(const std::string& bytes) const {
    return error_of([&] { read_matrix(write("a.rb", bytes)); });
  }
};

const std::string kSizes = "             3             3             5             0";
const std::string kStructure = " 1 3 4 6\n 1 3 2 1 3\n";

TEST_F(HarwellBoeingTest, ReadsColumns) {
  const std::string text = header("RUA", kSizes) + kStructure + values({1.5, 4, 3, 2, 1e-3});
  const HostCsr expected = csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1.5, 2, 3, 4, 1e-3});
  expect_same(read(text), expected);
  expect_same(read_matrix(write("noname", text)), expected);  // known by its header
  std::string small = text;
  small.replace(small.find("RUA"), 3, "rua");
  expect_same(read(small), expected);
  const std::string with_b = kTitle +
                             "             6             1             1             2             2\nRUA           " +
                             kSizes + "\n" + kFormats + "F                          1             0\n" + kStructure +
                             values({1.5, 4, 3, 2, 1e-3}) + values({1, 2, 3});
  expect_same(read(with_b), expected);
}

TEST_F(HarwellBoeingTest, FieldsThatTouchAndFortransNumbers) {
  const std::string text = header("RUA", kSizes, "(4I1)           (8I1)           (1P,4E6.1)          \n");
  const HostCsr m = read(text + "1346\n13213\n 1.5D0+4.E+0 3.0-2  2.00\n   -1.\n");
  // 1P: numbers without exponent are divided by 10. Columns: {0: 1.5, 2: 4}, {1: 0.03}, {0: 0.2, 2: -0.1}.
  expect_same(m, csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1.5, 0.2, 3e-2, 4, -0.1}));
}

TEST_F(HarwellBoeingTest, SymmetricSkewPatternAndInteger) {
  const std::string sizes = "             3             3             4             0", structure = " 1 3 4 5\n 1 3 2 3\n";
  expect_same(read(header("RSA", sizes) + structure + values({1, 2, 3, 4})),
              csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1, 2, 3, 2, 4}));
  expect_same(read(header("PSA", sizes, "(40I2)          (40I2)\n") + structure),
              csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1, 1, 1, 1, 1}));
  expect_same(
      read(header("iua", sizes, "(40I2)          (40I2)          (4I3)               \n") + structure + "  1 -2  3  4\n"),
      csr(3, 3, {0, 1, 2, 4}, {0, 1, 0, 2}, {1, 3, -2, 4}));
  expect_same(
      read(header("RZA", "             3             3             1             0") + " 1 2 2 2\n 3\n" + values({2})),
      csr(3, 3, {0, 1, 1, 2}, {2, 0}, {-2, 2}));
  expect_same(
      read(header("RRA", "             2             3             2             0") + " 1 1 2 3\n 2 1\n" + values({5, 6})),
      csr(2, 3, {0, 1, 2}, {2, 1}, {6, 5}));
}

TEST_F(HarwellBoeingTest, RefusesByName) {
  EXPECT_SAYS(error(header("CUA", kSizes)), "a.rb:3: complex matrices (CUA)", "two real files");
  EXPECT_SAYS(error(header("RHA", kSizes)), "complex matrices (RHA)");
  EXPECT_SAYS(error(header("RSE", kSizes)), "elemental matrices (RSE)", "RSA");
  EXPECT_SAYS(error(header("RUA", kSizes, "(40I2)          (40A2)          (3E25.16)\n")), "a.rb:4: the format \"(40A2)\"",
              "row indices");
  EXPECT_SAYS(error(header("RSA", "             3             4             5             0")), "must be square, not 3 × 4");
}

TEST_F(HarwellBoeingTest, DamageNamesTheLine) {
  const std::string good = header("RUA", kSizes);
  EXPECT_SAYS(error(good + " 1 3 2 6\n"), "a.rb:5: the pointer \"2\"", "from 3 to 6");
  EXPECT_SAYS(error(good + " 1 3 4 5\n"), "a.rb:5: the pointers run from 1 to 5", "1 to 6");
  EXPECT_SAYS(error(good + " 1 3 4 6\n 1 4 2 1 3\n"), "a.rb:6: the row index \"4\"", "from 1 to 3");
  EXPECT_SAYS(error(good + " 1 3 4 6\n 1 3 2\n"), "a.rb:6: a row index is missing", "truncated");
  EXPECT_SAYS(error(good + kStructure + values({1.5, 4, 3})), "the file ends where a value should be");
  EXPECT_SAYS(error(good + kStructure + "                      x\n"), "a.rb:7: the value \"x\"");
  EXPECT_SAYS(error(header("RUA", "             3             3     500000000             0")),
              "more than the file has room");
  EXPECT_SAYS(error(header("RSA", kSizes) + kStructure), "row 1 of column 3 is above the diagonal");
}

}  // namespace
}  // namespace shardmat
