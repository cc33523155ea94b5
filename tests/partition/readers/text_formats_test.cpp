// Text formats without a header that names their sizes.
#include <gtest/gtest.h>

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

TEST_F(TextFormatsTest, TripletsOfOneTriangle) {
  expect_same(read("0 0 4\n2 0 1\n2 2 5\n", triplets(0, "lower")), csr(3, 3, {0, 2, 2, 4}, {0, 2, 0, 2}, {4, 1, 1, 5}));
  expect_same(read("0 2 1\n", triplets(0, "upper")), csr(3, 3, {0, 1, 1, 2}, {2, 0}, {1, 1}));
  EXPECT_SAYS(error("0 0 4\n0 2 1\n", triplets(0, "lower")), "a.ijv:2: the entry (0, 2) is not in the lower triangle");
  EXPECT_SAYS(error("0 0 4\n", triplets(0, "upwards"), ErrorKind::usage), "'upwards'");
}

TEST_F(TextFormatsTest, TripletsAreReadOnlyByName) {
  EXPECT_SAYS(error_of([&] { read_matrix(write("a.ijv", "1 1 2.5\n")); }), "a.ijv", "--input-format triplets --base 1");
  ReadOptions unnamed;
  unnamed.choices.format = "triplets";
  EXPECT_SAYS(error("1 1 2.5\n", unnamed, ErrorKind::usage), "a.ijv", "--base 0 or --base 1");
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
  EXPECT_SAYS(error("1 1 2\n3 3 y\n", triplets(0)), "a.ijv:2: the value \"y\"");
  EXPECT_SAYS(error("1 1 2\n3 3 nan\n", triplets(0)), "a.ijv:2: the value \"nan\" is not finite");
  EXPECT_SAYS(error("1 1 2\n3 3 3 3\n", triplets(0)), "a.ijv:2: \"3\" follows");
  EXPECT_SAYS(error("1 1 2\n99999999999999999999 1 1\n", triplets(0)), "a.ijv:2: the row");
  EXPECT_SAYS(error("1 99999999999 2\n1 1 1\n99999999999 1 1\n", triplets(0)), "a.ijv", "ask for");
}

}  // namespace
}  // namespace shardmat
