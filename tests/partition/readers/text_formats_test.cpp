// Text formats without a header that names their sizes.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "partition/input_kind.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;

class TextFormatsTest : public test::FilesTest {
 protected:
  static ReadOptions triplets(int base, const std::string& triangle = "") {
    ReadOptions options;
    options.choices = {"triplets", base, triangle};
    return options;
  }
  HostCsr read(const std::string& text, const ReadOptions& options) const {
    const HostCsr m = read_matrix(write("a.ijv", text), options);
    // Pieces of a line or two give the same.
    expect_same(read_by_entries(*open_entries(path("a.ijv"), options, {7, 40}), options, {7, 40}), m);
    return m;
  }
  std::string error(const std::string& text, const ReadOptions& options, ErrorKind kind = ErrorKind::input) const {
    return error_of([&] { read_matrix(write("a.ijv", text), options); }, kind);
  }
};

TEST_F(TextFormatsTest, TripletsOfBothBases) {
  const std::string text = "# made by hand\n1 2 1.5\n\n3,1,-2D+00\n3 3 0\r\n% end\n1 2 0.25";
  expect_same(read(text, triplets(1)), csr(3, 3, {0, 1, 1, 3}, {1, 0, 2}, {1.75, -2, 0}));
  expect_same(read(text, triplets(0)), csr(4, 4, {0, 0, 1, 1, 3}, {2, 1, 3}, {1.75, -2, 0}));
  expect_same(read("0 3\n2 0\n", triplets(0)), csr(3, 4, {0, 1, 1, 2}, {3, 0}, {1, 1}));
  expect_same(read("# nothing\n", triplets(0)), csr(0, 0, {0}, {}, {}));
}

TEST_F(TextFormatsTest, WarnsIfTheBaseOccursNowhere) {
  std::vector<std::string> warnings;
  const auto warnings_of = [&](const std::string& text, int base) {
    ReadOptions options = triplets(base);
    options.choices.warn = [&](const Error& what) { warnings.push_back(what.what() + (" " + what.setting())); };
    warnings.clear();
    read_matrix(write("a.ijv", text), options);
    return warnings.size();
  };
  EXPECT_EQ(warnings_of("1 2 4\n3 1 5\n", 0), 1U);
  EXPECT_SAYS(warnings.at(0), "a.ijv: there is no row 0 and no column 0", "base 1", " base");
  EXPECT_EQ(warnings_of("1 2 4\n3 0 5\n", 0), 0U);
  EXPECT_EQ(warnings_of("0 2 4\n", 0), 0U);
  EXPECT_EQ(warnings_of("# nothing\n", 0), 0U);
  EXPECT_EQ(warnings_of("2 2 4\n", 1), 0U);
}

TEST_F(TextFormatsTest, TripletsOfOneTriangle) {
  expect_same(read("0 0 4\n2 0 1\n2 2 5\n", triplets(0, "lower")), csr(3, 3, {0, 2, 2, 4}, {0, 2, 0, 2}, {4, 1, 1, 5}));
  expect_same(read("0 2 1\n", triplets(0, "upper")), csr(3, 3, {0, 1, 1, 2}, {2, 0}, {1, 1}));
  EXPECT_SAYS(error("0 0 4\n0 2 1\n", triplets(0, "lower")), "a.ijv:2: the entry (0, 2) is not in the lower triangle");
  EXPECT_SAYS(error("0 0 4\n", triplets(0, "upwards"), ErrorKind::usage), "'upwards'");
}

TEST_F(TextFormatsTest, NamesTheHeaderOfAnotherProgram) {
  const std::string text = "# of a spreadsheet\nrow,col,val\r\n0,0,1.5\n";
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.csv", text)); }),
              "a.csv: remove line 2, the header \"row,col,val\"; below it are triplets", "name the format and the base");
  EXPECT_SAYS(error(text, triplets(0)), "a.ijv:2: the line \"row,col,val\" is a header; remove it");
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.csv", "a,b\nc,d\n1,2,3\n")); }), ".csv is no matrix file");
}

TEST_F(TextFormatsTest, TripletsAreReadOnlyByName) {
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.ijv", "1 1 2.5\n")); }), "a.ijv", "name the format and the base");
  ReadOptions unnamed;
  unnamed.choices.format = "triplets";
  EXPECT_SAYS(error("1 1 2.5\n", unnamed, ErrorKind::usage), "a.ijv", "name the base");
  ReadOptions other;
  other.choices.base = 1;
  EXPECT_SAYS(error("1 1 2.5\n", other, ErrorKind::usage), "only for triplets");
  EXPECT_EQ(kind_of_input(path("a.ijv"), triplets(1).choices), InputKind::foreign);
}

TEST_F(TextFormatsTest, TripletsThatAreWrongNameTheLine) {
  EXPECT_SAYS(error("1 1 2\n2 0 3\n", triplets(1)), "a.ijv:2: the column is 0", "begin with 1");
  EXPECT_SAYS(error("1 1 2\n0 2 3\n", triplets(1)), "a.ijv:2: the row is 0");
  EXPECT_SAYS(error("1 1 2\n-1 2 3\n", triplets(0)), "a.ijv:2: the row \"-1\"");
  EXPECT_SAYS(error("1 1 2\nx 2 3\n", triplets(0)), "a.ijv:2: the row \"x\"");
  EXPECT_SAYS(error("1 1 2\n1.5 2 3\n", triplets(0)), "a.ijv:2: the row \"1.5\"");
  EXPECT_SAYS(error("1 1 2\n3\n", triplets(0)), "a.ijv:2: the column is missing");
  EXPECT_SAYS(error("1 1 4\n2 2 7\n3 3", triplets(1)), "a.ijv:3: the value is missing");
  EXPECT_SAYS(error("# edges\n1 1\n2 2 7\n", triplets(1)), "a.ijv:3: \"7\" follows");
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n", triplets(1)), "Matrix Market");
  EXPECT_SAYS(error("1 1 2\n3 3 y\n", triplets(0)), "a.ijv:2: the value \"y\"");
  EXPECT_SAYS(error("1 1 2\n3 3 nan\n", triplets(0)), "a.ijv:2: the value \"nan\" is not finite");
  EXPECT_SAYS(error("1 1 2\n3 3 3 3\n", triplets(0)), "a.ijv:2: \"3\" follows");
  EXPECT_SAYS(error("1 1 2\n99999999999999999999 1 1\n", triplets(0)), "a.ijv:2: the row");
  EXPECT_SAYS(error("1 99999999999 2\n1 1 1\n99999999999 1 1\n", triplets(0)), "a.ijv", "ask for");
}

TEST_F(TextFormatsTest, AbaqusOfNodesAndDegreesOfFreedom) {
  const HostCsr expected = csr(4, 4, {0, 2, 4, 7, 8}, {0, 2, 1, 2, 0, 1, 2, 3}, {4, 1.5, 5, -2, 1.5, -2, 6, 7});
  const std::string input =
      "** made by a test\n*MATRIX INPUT, NAME=K\n10,1, 10,1, 4.0\n20,1, 10,1, 1.5\n10,2, 10,2, 5.\n"
      "20,1, 10,2, -2e0\n20,1, 20,1, 6\n20,3, 20,3, 7\n";
  expect_same(read_matrix(write("job_STIF1.mtx", input)), expected);
  const std::string labels = "10 1 10 1 4.0D0\n 10 1 20 1 1.5\n10 2 10 2 5.\n10 2 20 1 -2\n20 1 20 1 6\n20 3 20 3 7\n";
  expect_same(read_matrix(write("job_MASS2.mtx", labels)), expected);
  ReadOptions named;
  named.choices.format = "abaqus";
  expect_same(read_matrix(write("a.txt", labels), named), expected);
}

TEST_F(TextFormatsTest, AbaqusInCoordinates) {
  expect_same(read_matrix(write("job_STIF1.mtx", "1 1 4.\n3 1 1.5\n3 3 6\n")),
              csr(3, 3, {0, 2, 2, 4}, {0, 2, 0, 2}, {4, 1.5, 1.5, 6}));
  // Both triangles: nothing is expanded.
  expect_same(read_matrix(write("job_STIF1.mtx", "1 1 4.\n3 1 1.5\n1 3 2.5\n2 1 7\n")),
              csr(3, 3, {0, 2, 3, 4}, {0, 2, 0, 0}, {4, 2.5, 7, 1.5}));
  expect_same(read_matrix(write("u.mtx", "*MATRIX INPUT, NAME=K, type = unsymmetric\n1,1,2,1,3\n")),
              csr(2, 2, {0, 1, 1}, {1}, {3}));
}

TEST_F(TextFormatsTest, AbaqusWithNodesThatItAdded) {
  // Internal nodes have negative numbers, go first, and couple to nodes of the user; commas or blanks.
  const HostCsr expected =
      csr(4, 4, {0, 2, 5, 7, 9}, {0, 1, 0, 1, 3, 2, 3, 1, 2}, {2.5, -1, -1, 3.5, 0.25, 4.5, -2, 0.25, -2});
  const std::string labels = "-2 1 -2 1 2.5\n-1 1 -2 1 -1.\n-1 1 -1 1 3.5\n7 1 7 1 4.5\n7 3 -1 1 2.5E-01\n7 3 7 1 -2.\n";
  const MatrixWithUnknowns read = read_matrix_with_unknowns(write("job_STIF2.mtx", labels));
  expect_same(read.matrix, expected);
  ASSERT_TRUE(read.unknowns);
  EXPECT_EQ(*read.unknowns, (UnknownList{{-2, 1}, {-1, 1}, {7, 1}, {7, 3}}));
  std::string input = labels;
  for (char& c : input)
    if (c == ' ') c = ',';
  expect_same(read_matrix(write("K.mtx", "*MATRIX INPUT, NAME=K, INPUT=x\n" + input)), expected);
}

TEST_F(TextFormatsTest, AbaqusInCoordinatesOfAnyForm) {
  const HostCsr expected = csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {4.5, -1.5, 1e36, -1.5, 6.25});
  for (const char* text :
       {"1, 1, 4.5\n2, 2, 1.0E+36\n3, 1, -1.5\n3, 3, 6.25\n", "  1  1   4.5E+00\r\n2 2 1e36\r\n3 1 -1.5\r\n3 3 6.25\r\n",
        "** FORMAT=COORDINATE\n*MATRIX OUTPUT, STIFFNESS, FORMAT=COORDINATE\n1 1 4.5\n2 2 1.D36\n1 3 -1.5\n3 3 6.25\n"}) {
    expect_same(read_matrix(write("job_STIF1.mtx", text)), expected);
    expect_same(read_matrix(write("job_X7_STIF12.mtx", text)), expected);
  }
}

TEST_F(TextFormatsTest, AbaqusIsToldFromMatrixMarket) {
  EXPECT_EQ(reader_of(write("a.mtx", "%%MatrixMarket matrix coordinate real general\n")).name, "matrix-market");
  EXPECT_EQ(reader_of(write("a.mtx", "3 3 9\n1 1 1\n")).name, "matrix-market");  // a lost banner is an error there
  EXPECT_EQ(reader_of(write("a.mtx", "")).name, "matrix-market");
  EXPECT_EQ(reader_of(write("a.mtx", "** text\n1,1,1,1,2\n")).name, "abaqus");
  EXPECT_EQ(reader_of(write("job_STIF12.mtx", "1 1 1\n")).name, "abaqus");
}

TEST_F(TextFormatsTest, AbaqusThatIsWrongNamesTheLine) {
  const auto wrong = [&](const std::string& text) { return error_of([&] { read_matrix(write("j_STIF1.mtx", text)); }); };
  EXPECT_SAYS(wrong("1,1,1,1,2\n1,1,2\n"), "j_STIF1.mtx:2: the line has 3 numbers, and others have 5");
  EXPECT_SAYS(wrong("1,1,1,1\n"), "j_STIF1.mtx:1: the line has 4 numbers");
  EXPECT_SAYS(wrong("1,1,1,1,2,3\n"), "more than 5");
  EXPECT_SAYS(wrong("1 1 2\n1 0 2\n"), "j_STIF1.mtx:2: the column \"0\"");
  EXPECT_SAYS(wrong("1 1 2\n-4 1 2\n"), "j_STIF1.mtx:2: a row or a column is negative", "FORMAT=LABELS");
  EXPECT_SAYS(wrong("1 1 2\n1, -4, 2\n"), "j_STIF1.mtx:2: a row or a column is negative");
  EXPECT_SAYS(wrong("1,1,1,1,2\n1,x,1,1,2\n"), "j_STIF1.mtx:2: the degree of freedom \"x\"");
  EXPECT_SAYS(wrong("1,1,1,1,nan\n"), "not finite");
}

TEST_F(TextFormatsTest, CalculixWithItsUnknowns) {
  write("beam.dof", "2.1\n1.2\n1.1\n");  // sorted: 1.1, 1.2, 2.1
  const HostCsr expected = csr(3, 3, {0, 2, 3, 5}, {0, 2, 1, 0, 2}, {6, -1.5, 5, -1.5, 4});
  for (const char* name : {"beam.sti", "beam.mas"})
    expect_same(read_matrix(write(name, " 1 1 4.0\n 1 3 -1.5\n 2 2 5.\n 3 3 6.E0\n")), expected);
  EXPECT_SAYS(error_of([&] { read_matrix(write("beam.sti", "1 1 4\n4 1 1\n")); }), "beam.sti:2: row 4, column 1",
              "beam.dof names only 3 unknowns");
  EXPECT_SAYS(error_of([&] { read_matrix(write("rod.sti", "1 1 4\n")); }), "rod.sti", "rod.dof is not beside it");
  write("beam.dof", "2.1\nx\n");
  EXPECT_SAYS(error_of([&] { read_matrix(path("beam.sti")); }), "beam.dof:2: \"x\" is no unknown");
}

TEST_F(TextFormatsTest, CalculixNamesSomeUnknownsTwice) {
  write("shell.dof", "2.1\n1.1\n2.1\n");  // of a node that CalculiX made several of; they keep their order
  const MatrixWithUnknowns read = read_matrix_with_unknowns(write("shell.con", "1 1 4\n1 2 -1\n2 2 5\n1 3 -2\n3 3 6\n"));
  expect_same(read.matrix, csr(3, 3, {0, 2, 5, 7}, {0, 1, 0, 1, 2, 1, 2}, {5, -1, -1, 4, -2, -2, 6}));
  ASSERT_TRUE(read.unknowns);
  EXPECT_EQ(*read.unknowns, (UnknownList{{1, 1}, {2, 1}, {2, 1}}));
}

TEST_F(TextFormatsTest, RowsHaveNodesAndDegreesOfFreedom) {
  const auto unknowns = [&](const std::string& name, const std::string& text) {
    const auto found = read_matrix_with_unknowns(write(name, text)).unknowns;
    return found ? std::optional(*found) : std::nullopt;
  };
  EXPECT_EQ(unknowns("job_STIF1.mtx", "20,1, 10,2, 4.0\n20,1, 20,1, 4.0\n-3,11, -3,11, 1\n"),
            (UnknownList{{-3, 11}, {10, 2}, {20, 1}}));
  EXPECT_EQ(unknowns("job_STIF1.mtx", "*MATRIX INPUT, NAME=K\n"), UnknownList());
  EXPECT_EQ(unknowns("job_STIF1.mtx", "1 1 4.\n3 1 1.5\n"), std::nullopt);  // indices
  write("beam.dof", "2.1\n1.2\n1.10\n");
  EXPECT_EQ(unknowns("beam.sti", "1 1 4\n"), (UnknownList{{1, 2}, {1, 10}, {2, 1}}));
  EXPECT_EQ(unknowns("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n"), std::nullopt);
}

}  // namespace
}  // namespace shardmat
