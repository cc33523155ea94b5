#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "partition/readers/reader.h"
#include "partition/vectors/vector_file.h"
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
  static std::string header(const std::string& type, const std::string& sizes, const std::string& formats = kFormats,
                            const std::vector<int>& lines = {1, 1, 2, 0}) {
    std::string second = fmt::format("{:14}", lines[0] + lines[1] + lines[2] + lines[3]);
    for (const int count : lines) second += fmt::format("{:14}", count);
    return kTitle + second + "\n" + type + "           " + sizes + "\n" + formats;
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
                             "             5             1             1             2             1\nRUA           " +
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
  expect_same(read(header("PSA", sizes, "(40I2)          (40I2)\n", {1, 1, 0, 0}) + structure),
              csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1, 1, 1, 1, 1}));
  expect_same(read(header("iua", sizes, "(40I2)          (40I2)          (4I3)               \n", {1, 1, 1, 0}) + structure +
                   "  1 -2  3  4\n"),
              csr(3, 3, {0, 1, 2, 4}, {0, 1, 0, 2}, {1, 3, -2, 4}));
  expect_same(read(header("RZA", "             3             3             1             0", kFormats, {1, 1, 1, 0}) +
                   " 1 2 2 2\n 3\n" + values({2})),
              csr(3, 3, {0, 1, 1, 2}, {2, 0}, {-2, 2}));
  expect_same(read(header("RRA", "             2             3             2             0", kFormats, {1, 1, 1, 0}) +
                   " 1 1 2 3\n 2 1\n" + values({5, 6})),
              csr(2, 3, {0, 1, 2}, {2, 1}, {6, 5}));
}

/// A 3 × 3 matrix with two right-hand sides, guesses and solutions as `type` says, in fields of (4F6.2).
class HarwellBoeingVectors : public HarwellBoeingTest {
 protected:
  static std::string file(const std::string& type, const std::string& vectors, const std::string& count = "2",
                          const std::string& format = "(4F6.2)") {
    std::string formats = kFormats;
    formats.insert(formats.size() - 1, format);
    const auto lines = std::count(vectors.begin(), vectors.end(), '\n');
    return kTitle + fmt::format("{:14}             1             1             2{:14}\nRUA           ", lines + 4, lines) +
           kSizes + "\n" + formats + type + fmt::format("{:>25}{:>14}\n", count, 0) + kStructure +
           values({1.5, 4, 3, 2, 1e-3}) + vectors;
  }
  HostVector<double> vector(const std::string& object, std::int64_t columns = 1) const {
    const VectorFile read(path("a.rb" + object), "x", columns);
    EXPECT_EQ(read.size(), 3);
    return read.read(0, 3);
  }
  std::string vector_error(const std::string& object, const std::string& bytes = "", std::int64_t columns = 1) const {
    if (!bytes.empty()) write("a.rb", bytes);
    return error_of([&] { vector(object, columns); });
  }
};

const std::string kSixes = "  1.00  2.00  3.00  4.00\n  5.00-60.00\n", kGuesses = "  0.10  0.20  0.30 0.4D0\n  0.50  6E-1\n",
                  kSolutions = "  7.00  8.00  9.00 10.00\n 11.00 12.00\n";

TEST_F(HarwellBoeingVectors, OfTheSameFile) {
  write("a.rb", file("FGX", kSixes + kGuesses + kSolutions));
  EXPECT_EQ(vector(":rhs1"), (HostVector<double>{1, 2, 3}));
  EXPECT_EQ(vector(":rhs2"), (HostVector<double>{4, 5, -60}));
  EXPECT_EQ(vector(":guess2"), (HostVector<double>{0.4, 0.5, 0.006}));
  EXPECT_EQ(vector(":solution1"), (HostVector<double>{7, 8, 9}));
  EXPECT_EQ(vector(":rhs", 2), (HostVector<double>{1, 4, 2, 5, 3, -60}));
  EXPECT_EQ(VectorFile(path("a.rb"), "b", 2).read(0, 3), vector(":rhs", 2));
  EXPECT_EQ(VectorFile(path("a.rb"), "x0", 2).read(0, 3), vector(":guess", 2));
  EXPECT_SAYS(vector_error("", "", 2), "vectors of several kinds", "rhs1 to rhs2, guess1 to guess2 or solution1 to");
  EXPECT_EQ(vector(":solution", 2), (HostVector<double>{7, 10, 8, 11, 9, 12}));
  EXPECT_SAYS(vector_error(":rhs"), "a.rb: it has 2 vectors rhs", "rhs1 to rhs2");
  EXPECT_SAYS(vector_error(":rhs3"), "no vector rhs3", "rhs1 to rhs2, guess1 to guess2 or solution1 to solution2");
  EXPECT_SAYS(vector_error(":rhs0"), "no vector rhs0");
  EXPECT_SAYS(vector_error(":b"), "no vector b");
  EXPECT_SAYS(vector_error(":rhs", "", 3), "2 vectors rhs", "3 columns");
  EXPECT_SAYS(vector_error(":rhs1", "", 2), "one vector", "2 columns");
  expect_same(read_matrix(path("a.rb")), read(header("RUA", kSizes) + kStructure + values({1.5, 4, 3, 2, 1e-3})));
  EXPECT_SAYS(error_of([&] { read_matrix(path("a.rb:rhs1")); }), "its vectors", "leave out :rhs1");
  write("a.rb", file("f x", "  1.00  2.00  3.00\n  4.00  5.00  6.00\n", "1"));
  EXPECT_EQ(VectorFile(path("a.rb"), "b").read(0, 3), (HostVector<double>{1, 2, 3}));
  EXPECT_EQ(vector(":solution"), (HostVector<double>{4, 5, 6}));
  EXPECT_SAYS(vector_error(":guess"), "it has rhs or solution");
}

TEST_F(HarwellBoeingVectors, AreListed) {
  const auto listed = [&](const std::string& bytes) {
    std::string text;
    for (const FileObject& object : list_objects(write("a.rb", bytes)))
      text += fmt::format("{} {} {}; ", object.name, object.text, object.matrix);
    return text;
  };
  EXPECT_EQ(listed(header("RUA", kSizes)), " matrix, harwell-boeing true; ");
  EXPECT_EQ(listed(file("F X", "\n\n", "1")),
            " matrix, harwell-boeing true; rhs vector, 3 × 1 false; solution vector, 3 × 1 false; ");
  EXPECT_EQ(listed(file("F", kSixes)), " matrix, harwell-boeing true; rhs1 vector, 3 × 1 false; rhs2 vector, 3 × 1 false; ");
  EXPECT_SAYS(listed(file("M", kSixes)), "vectors that are not read: its right-hand sides have the form of the matrix (M)");
  EXPECT_SAYS(listed(file("F", kSixes, "200")), "vectors that cannot be read", "a.rb:5: its header promises 200 vectors");
}

TEST_F(HarwellBoeingVectors, DamageNamesTheLine) {
  EXPECT_SAYS(vector_error(":rhs1", file("MGX", kSixes)), "have the form of the matrix (M)", "write them in full");
  EXPECT_SAYS(vector_error(":rhs2", file("F", "  1.00  2.00  3.00  4.00\n")),
              "a.rb:5: the header promises 1 lines of vectors, and their format and sizes ask for 2");
  EXPECT_SAYS(vector_error(":rhs2", file("F", "  1.00  2.00  3.00  4.00\n  5.00\n")),
              "a.rb:11: a value of a vector is missing");
  EXPECT_SAYS(vector_error(":solution1", file("F X", kSixes)), "promises 2 lines of vectors", "ask for 4");
  std::string cut = file("F", kSixes);
  cut.resize(cut.size() - 14);
  EXPECT_SAYS(vector_error(":rhs1", cut), "a.rb:10: the file has 10 lines, and its header promises 11");
  EXPECT_SAYS(vector_error(":rhs2", cut), "a.rb:10: the file ends where a value of a vector");
  EXPECT_SAYS(vector_error(":rhs1", file("F", kSixes) + "  9.00\n"), "the file has 12 lines", "promises 11");
  EXPECT_SAYS(vector_error(":rhs1", header("RUA", kSizes) + kStructure), "holds a matrix, and no right-hand side");
  EXPECT_SAYS(vector_error(":rhs1", file("F", "  1.00     x  3.00  4.00\n  5.00  6.00\n")), "a.rb:10: the value \"x\"");
  EXPECT_SAYS(vector_error(":rhs1", file("F", kSixes, "2", "(4A6)")), "a.rb:5: the format \"(4A6)\" of the vectors");
  EXPECT_SAYS(vector_error(":rhs1", file("F", kSixes, "0")), "a.rb:5: the type of the right-hand sides");
  EXPECT_SAYS(vector_error(":rhs1", file("Q", kSixes)), "a.rb:5: the type of the right-hand sides");
  EXPECT_SAYS(vector_error(":rhs1", file("F", kSixes, "4000000000000000000")), "promises 4000000000000000000 vectors",
              "more than the file has room for");
}

TEST_F(HarwellBoeingVectors, RutherfordBoeingHasFilesOfTheirOwn) {
  const std::string dense = kTitle + "rhsrd FULL_R2  r             3             2             6\n(4F6.2)\n" + kSixes;
  write("a.rb", dense);
  EXPECT_EQ(vector(":rhs2"), (HostVector<double>{4, 5, -60}));
  EXPECT_EQ(vector("", 2), (HostVector<double>{1, 4, 2, 5, 3, -60}));
  EXPECT_EQ(list_objects(path("a.rb")).size(), 2u);
  EXPECT_SAYS(error_of([&] { read_matrix(path("a.rb")); }), "a.rb:3", "vectors", "no matrix");
  write("a.rb", kTitle + "slnr  FULL_S1  r             3             1             3\n(4F6.2)\n  1.00  2.00  3.00");
  EXPECT_EQ(vector(":solution"), (HostVector<double>{1, 2, 3}));
  const auto changed = [&](std::size_t at, const std::string& to) {
    std::string text = dense;
    return text.replace(kTitle.size() + at, to.size(), to);
  };
  EXPECT_SAYS(vector_error("", changed(4, "s")), "sparse", "form d");
  EXPECT_SAYS(vector_error("", changed(15, "c")), "complex", "two files");
  EXPECT_SAYS(vector_error("", changed(0, "ord")), "of the kind ord");
  EXPECT_SAYS(vector_error("", changed(19, "999999999")), "promises 3 vectors of 999999999 entries");
}

TEST_F(HarwellBoeingTest, RefusesByName) {
  EXPECT_SAYS(error(header("CUA", kSizes)), "a.rb:3: complex matrices (CUA)", "--complex as-real");
  EXPECT_SAYS(error(header("RHA", kSizes)), "complex matrices (RHA)");
  EXPECT_SAYS(error(header("RSE", kSizes)), "elemental matrices (RSE)", "RSA");
  EXPECT_SAYS(error(header("RUA", kSizes, "(40I2)          (40A2)          (3E25.16)\n") + kStructure),
              "a.rb:4: the format \"(40A2)\"", "row indices");
  EXPECT_SAYS(error(header("RSA", "             3             4             5             0")), "must be square, not 3 × 4");
}

TEST_F(HarwellBoeingTest, SaysWhereItsHeaderIsCut) {
  const std::string all = header("RUA", kSizes),
                    second = kTitle + "             4             1             1             2";
  EXPECT_SAYS(error(""), "a.rb: the file ends before line 1 of its header, the title", "truncated");
  EXPECT_SAYS(error(kTitle.substr(0, 9)), "a.rb:1: the file ends before line 2 of its header, the numbers of lines");
  EXPECT_SAYS(error(second), "a.rb:2: the file ends before line 3 of its header, the type and the size of the matrix");
  EXPECT_SAYS(error(second + "             0\nR"),
              "a.rb:3: the file ends in this line of its header, the type and the size");
  EXPECT_SAYS(error(second + "             0\nRUA           " + kSizes.substr(0, 20)), "a.rb:3: the file ends in this line");
  EXPECT_SAYS(error(second + "             0\nRUA           " + kSizes + "\n"), "a.rb:3: the file ends before line 4 of its",
              "the formats");
  EXPECT_SAYS(error(all.substr(0, all.find("(3E25.16)") + 4)),
              "a.rb:4: the file ends in this line of its header, the formats");
  EXPECT_SAYS(error(second + "             1\nRUA           " + kSizes + "\n" + kFormats),
              "a.rb:4: the file ends before line 5 of its header, the type and the number of the right-hand sides");
}

TEST_F(HarwellBoeingTest, DamageNamesTheLine) {
  const std::string good = header("RUA", kSizes);
  EXPECT_SAYS(error(good + " 1 3 2 6\n"), "a.rb:5: the pointer \"2\"", "from 3 to 6");
  EXPECT_SAYS(error(good + " 1 3 4 5\n"), "a.rb:5: the pointers run from 1 to 5", "1 to 6");
  EXPECT_SAYS(error(good + " 1 3 4 6\n 1 4 2 1 3\n"), "a.rb:6: the row index \"4\"", "from 1 to 3");
  EXPECT_SAYS(error(good + " 1 3 4 6\n 1 3 2\n"), "a.rb:6: a row index is missing", "truncated");
  EXPECT_SAYS(error(good + kStructure + values({1.5, 4, 3})), "the file ends where a value should be");
  EXPECT_SAYS(error(good + kStructure + "                      x\n"), "a.rb:7: the value \"x\"");
  EXPECT_SAYS(error(header("RUA", "             3             3     500000000             0", kFormats,
                           {1, 12500000, 166666667, 0})),
              "more than the file has room");
  EXPECT_SAYS(error(header("RSA", kSizes) + kStructure), "row 1 of column 3 is above the diagonal");
}

TEST_F(HarwellBoeingTest, ComparesAllNumbersOfLines) {
  const std::string body = kStructure + values({1.5, 4, 3, 2, 1e-3});
  const auto with = [&](const std::vector<int>& lines) { return error(header("RUA", kSizes, kFormats, lines) + body); };
  EXPECT_SAYS(with({2, 1, 2, 0}), "a.rb:4: line 2 of the header promises 2 lines of pointers", "ask for 1");
  EXPECT_SAYS(with({1, 2, 2, 0}), "2 lines of row indices", "ask for 1");
  EXPECT_SAYS(with({1, 1, 3, 0}), "3 lines of values", "ask for 2");
  EXPECT_SAYS(with({1, 1, 2, -1}), "-1 lines of vectors");
  std::string total = header("RUA", kSizes);
  total.replace(kTitle.size() + 13, 1, "5");
  EXPECT_SAYS(error(total + body), "5 lines in all", "ask for 4");
  const std::string good = header("RUA", kSizes) + body;
  EXPECT_EQ(read(good + "\n  \n").nnz(), 5);  // empty lines at the end
  EXPECT_SAYS(error(good + "   1.0\n"), "the file has 9 lines, and its header promises 8", "comes twice");
  std::string twice = good;  // the first line of values: all others move by three
  const std::size_t at = good.size() - body.size() + kStructure.size();
  twice.insert(at, good.substr(at, 76));
  EXPECT_SAYS(error(twice), "a.rb:8: there is text in column 54");
  EXPECT_SAYS(error(good.substr(0, at) + good.substr(at + 76)), "a value is missing");
}

TEST_F(HarwellBoeingTest, FortransFormats) {
  const auto with = [&](const std::string& formats, const std::string& text, const std::vector<int>& lines) {
    return read(header("RUA", kSizes, formats + "\n", lines) + text);
  };
  const HostCsr m = csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {1.5, 2, 3, 4, -0.001});
  // Columns: 1.5, 4 | 3 | 2, -0.001.
  const std::string pointers = "        1        3        4        6\n",
                    indices = "        1        3        2        1        3\n";
  const std::string implied = "    1500    4000    3000    2000      -1\n";
  expect_same(with("(8I9)           (8I9)           (5F8.3)             ", pointers + indices + implied, {1, 1, 1, 0}), m);
  expect_same(with("(1X,8I9)        (1x, 8i9)       (2X,5F8.3)          ", " " + pointers + "*" + indices + "AB" + implied,
                   {1, 1, 1, 0}),
              m);
  // The decimals count with an exponent, too, the scale does not.
  expect_same(with("(8I9)           (8I9)           (1P,5E8.3)          ",
                   pointers + indices + "  1500+0  4000D0   30000    20.0     -10\n", {1, 1, 1, 0}),
              m);
  expect_same(with("(8I9)           (8I9)           (3(2P,ES12.3E3))    ",
                   pointers + indices + "  1.500E+000    4.0D+00         300.\n    2.00E+00      -1.E-3\n", {1, 1, 2, 0}),
              m);
  // The lines behind the first begin with the last group.
  expect_same(with("(8I9)           (8I9)           (1X,F8.3,2(F8.3))   ",
                   pointers + indices + "*    1500    4000    3000\n    2000      -1\n", {1, 1, 2, 0}),
              m);
  // Numbers of lines from column 73 on.
  expect_same(with("(8I9)           (8I9)           (3G24.3)            ",
                   pointers + indices +
                       fmt::format("{:>24}{:>24}{:>24}{:>8}\n{:>24}{:>24}\n", "1500", "4000", "3000", "7", "+2.0", "-.001"),
                   {1, 1, 2, 0}),
              m);
  for (const char* format : {"(4A6)", "(2F8.3,I8)", "(F8.3,F9.3)", "(F8.3,1P,F8.3)", "(F8.3/F8.3)", "(T3,F8.3)", "(F0.3)",
                             "(F8.3", "F8.3", "(0F8.3)", "(-3F8.3)", "()", "((((((((((F8.3))))))))))", "(999(999F8.3))"})
    EXPECT_SAYS(error(header("RUA", kSizes, fmt::format("(8I9)           (8I9)           {:20}\n", format)) + kStructure),
                "of the values is not known");
  EXPECT_SAYS(error(header("RUA", kSizes, "(8F9.0)         (8I9)           (5F8.3)             \n") + kStructure),
              "of the pointers");
  EXPECT_SAYS(error(header("RUA", kSizes, "(8I9)           (8I9)           (2F8.3)             \n", {1, 1, 3, 0}) +
                    pointers + indices + "  1.0     2.0     3.0\n"),
              "there is text in column 19", "no value");
}

TEST_F(HarwellBoeingTest, SkewDiagonalIsZero) {
  const std::string head = header("RZA", "             3             3             2             0", kFormats, {1, 1, 1, 0});
  expect_same(read(head + " 1 3 3 3\n 1 3\n" + values({0, 2})), csr(3, 3, {0, 2, 2, 3}, {0, 2, 0}, {0, -2, 2}));
  EXPECT_SAYS(error(head + " 1 3 3 3\n 1 3\n" + values({5, 2})), "the diagonal entry in row 1 is 5", "skew-symmetric");
}

}  // namespace
}  // namespace shardmat
