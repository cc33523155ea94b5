#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/base/parallel.h"
#include "partition/readers/reader.h"
#include "partition/readers/reader_list.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat {
namespace {

using test::csr;
using test::error_of;
using test::expect_same;
using test::gzip;
using test::Path;

const std::string kBanner = "%%MatrixMarket matrix coordinate real general\n";

/// Every text is read four ways: in one piece and in pieces of a few bytes, plain and compressed.
class MatrixMarketTest : public test::FilesTest {
 protected:
  /// Pieces of one or two lines, and some tens of batches.
  static ReadLimits tiny(const std::string& text) {
    return {7, std::max<std::int64_t>(40, static_cast<std::int64_t>(text.size()) / 30), std::int64_t{1} << 30};
  }

  HostCsr read(const std::string& text, const ReadOptions& options = {}) {
    const HostCsr m = read_matrix(write("a.mtx", text), options);
    expect_same(read_matrix_market(path("a.mtx"), options, tiny(text)), m);
    expect_same(read_matrix(write("a.mtx.gz", gzip(text)), options), m);
    expect_same(read_matrix_market(path("a.mtx.gz"), options, tiny(text)), m);
    validate(m.view(), {options.allow_nonfinite, 0, "a.mtx"});
    return m;
  }

  /// The message, which is the same in all four ways but for the file's name.
  std::string error(const std::string& text, ErrorKind kind = ErrorKind::input) {
    write("a.mtx", text);
    write("a.mtx.gz", gzip(text));
    const std::string message = error_of([&] { read_matrix(path("a.mtx")); }, kind);
    for (const char* name : {"a.mtx", "a.mtx.gz"})
      for (const ReadLimits& limits : {ReadLimits{}, tiny(text)}) {
        std::string other = error_of([&] { read_matrix_market(path(name), {}, limits); }, kind);
        for (auto at = other.find(".mtx.gz"); at != std::string::npos; at = other.find(".mtx.gz")) other.erase(at + 4, 3);
        if (kind == ErrorKind::input) {
          EXPECT_EQ(other, message);
        }
      }
    return message;
  }
};

TEST_F(MatrixMarketTest, ReadsRealGeneral) {
  expect_same(read(kBanner + "2 3 3\n2 1 -1.5e-3\n1 3 4\n2 3 .5\n"), csr(2, 3, {0, 1, 3}, {2, 0, 2}, {4, -1.5e-3, .5}));
}

TEST_F(MatrixMarketTest, LastLineNeedsNoEnd) {
  expect_same(read(kBanner + "2 2 2\n1 1 1\n2 2 25"), csr(2, 2, {0, 1, 2}, {0, 1}, {1, 25}));
  expect_same(read("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1"), csr(1, 1, {0, 1}, {0}, {1}));
  expect_same(read(kBanner + "0 0 0"), csr(0, 0, {0}, {}, {}));
}

TEST_F(MatrixMarketTest, ReadsIntegerAndPattern) {
  expect_same(read("%%matrixmarket MATRIX Coordinate INTEGER General\n1 2 2\n1 1 -7\n1 2 +12\n"),
              csr(1, 2, {0, 2}, {0, 1}, {-7, 12}));
  expect_same(read("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n"),
              csr(2, 2, {0, 1, 3}, {1, 0, 1}, {1, 1, 1}));
}

TEST_F(MatrixMarketTest, ExpandsSymmetry) {
  expect_same(read("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 3\n3 3 4\n"),
              csr(3, 3, {0, 2, 4, 6}, {0, 1, 0, 2, 1, 2}, {1, 2, 2, 3, 3, 4}));
  expect_same(read("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 2\n3 1 -5\n"),
              csr(3, 3, {0, 2, 3, 4}, {1, 2, 0, 0}, {-2, 5, 2, -5}));
}

TEST_F(MatrixMarketTest, SumsDuplicates) {
  expect_same(read(kBanner + "2 2 5\n2 2 1\n1 1 2\n2 2 4\n2 1 8\n2 2 16\n"), csr(2, 2, {0, 1, 3}, {0, 0, 1}, {2, 8, 21}));
  EXPECT_SAYS(error(kBanner + "2 2 2\n2 2 1.7e308\n2 2 1.7e308\n"), "a.mtx: row 1", "inf");
}

TEST_F(MatrixMarketTest, AcceptsCarriageReturnsBlanksAndCommentsAnywhere) {
  expect_same(read("%%MatrixMarket  matrix coordinate\treal general\r\n% one\r\n\r\n   % two\n\t\n 2  2\t2 "
                   "\r\n\r\n%three\n"
                   " 1\t1  5 \r\n  \n% four 1 1 1\n2 2 6\r\n\n\n%\n"),
              csr(2, 2, {0, 1, 2}, {0, 1}, {5, 6}));
}

TEST_F(MatrixMarketTest, AcceptsNumbersAsProgramsWriteThem) {
  const HostCsr m = read(kBanner +
                         "1 9 9\n1 1 1.0D+02\n1 2 -2d-1\n1 3 +3\n1 4 1E2\n1 5 4.9406564584124654e-324\n1 6 1e-999\n1 7 -0\n"
                         "1 8 0.1000000000000000055511151231257827021181583404541015625\n1 9 5.\n");
  EXPECT_EQ(m.values, (HostVector<double>{100, -.2, 3, 100, 4.9406564584124654e-324, 0, 0, .1, 5}));
  EXPECT_TRUE(std::signbit(m.values[6]));
}

TEST_F(MatrixMarketTest, HugeSizesNeedNoMoreThanTheirRows) {
  expect_same(read(kBanner + "1 9223372036854775807 2\n1 9223372036854775807 1\n1 5000000000 2\n"),
              csr(1, 9223372036854775807, {0, 2}, {4999999999, 9223372036854775806}, {2, 1}));
}

TEST_F(MatrixMarketTest, NonfiniteOnlyWhenAllowed) {
  ReadOptions allow;
  allow.allow_nonfinite = true;
  const std::string text = kBanner + "1 4 4\n1 1 1\n1 2 NaN\n1 3 -inf\n1 4 Infinity\n";
  const HostCsr m = read_matrix(write("a.mtx", text), allow);
  EXPECT_TRUE(std::isnan(m.values[1]));
  EXPECT_EQ(m.values[2], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(m.values[3], std::numeric_limits<double>::infinity());
  EXPECT_SAYS(error(text), "a.mtx:4: ", "NaN", "accept values that are not finite");
  EXPECT_EQ(setting_of([&] { read_matrix(path("a.mtx")); }), "allow_nonfinite");
  EXPECT_SAYS(error(kBanner + "1 1 1\n1 1 -inf\n"), "a.mtx:3: ", "-inf");
  EXPECT_SAYS(error_of([&] { read_matrix(write("b.mtx", kBanner + "1 1 1\n1 1 1e999\n"), allow); }),
              "b.mtx:3: ", "too large");
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 nan\n"), "a.mtx:3: ", "nan");
}

TEST_F(MatrixMarketTest, RefusesOtherKindsByName) {
  const auto banner = [&](const std::string& words) { return error("%%MatrixMarket " + words + "\n1 1 1\n1 1 1\n"); };
  EXPECT_SAYS(banner("matrix coordinate complex general"), "a.mtx:1: ", "complex", "--complex as-real");
  EXPECT_SAYS(banner("matrix coordinate real hermitian"), "a.mtx:1: ", "hermitian", "declare it symmetric");
  EXPECT_SAYS(banner("matrix coordinate double general"), "a.mtx:1: ", "double", "real, integer, pattern or complex");
  EXPECT_SAYS(banner("matrix coordinate real symetric"), "a.mtx:1: ", "did you mean symmetric?");
  EXPECT_SAYS(banner("matrix coordinat real general"), "a.mtx:1: ", "did you mean coordinate?");
  EXPECT_SAYS(banner("vector coordinate real general"), "a.mtx:1: ", "vector");
  EXPECT_SAYS(banner("matrix coordinate pattern skew-symmetric"), "a.mtx:1: ", "pattern");
  EXPECT_SAYS(banner("matrix coordinate real"), "a.mtx:1: ", "4 words");
  EXPECT_SAYS(error("%%MatrixMarket matrix array real general\n1 1\n1\n"), "a.mtx:1: ", "array", "coordinate");
}

TEST_F(MatrixMarketTest, RefusesWhatIsNoMatrixMarketFile) {
  EXPECT_SAYS(error("1 1 1\n1 1 1\n"), "a.mtx:1: ", "no Matrix Market file");
  EXPECT_SAYS(error(std::string("\x00\xff\x7f"
                                "ELF",
                                6) +
                    std::string(1000, '\x01')),
              "a.mtx:1: ", "\\x00\\xff\\x7fELF");
  EXPECT_SAYS(error_of([&] { read_matrix(write("e.mtx", "")); }), "e.mtx", "empty");
  EXPECT_SAYS(error_of([&] { read_matrix(write("e.mtx.gz", "")); }), "e.mtx.gz", "empty");
  EXPECT_SAYS(error_of([&] { read_matrix(write("e.mtx.gz", gzip(""))); }), "e.mtx.gz", "empty");
  const std::string endless = kBanner + std::string(40 << 20, 'x');
  EXPECT_SAYS(error_of([&] { read_matrix(write("l.mtx", endless)); }), "l.mtx", "line of more than");
  EXPECT_SAYS(error_of([&] { read_matrix(write("l.mtx.gz", gzip(endless))); }), "l.mtx.gz", "line of more than");
}

TEST_F(MatrixMarketTest, RefusesWrongSizeLines) {
  EXPECT_SAYS(error(kBanner), "a.mtx:1: ", "size line", "truncated");
  EXPECT_SAYS(error(kBanner + "% only\n\n"), "a.mtx:3: ", "size line");
  EXPECT_SAYS(error(kBanner + "%\n2 2\n1 1 1\n"), "a.mtx:3: ", "2 numbers", "three");
  EXPECT_SAYS(error(kBanner + "2 2 1 1\n1 1 1\n"), "a.mtx:2: ", "4 numbers");
  EXPECT_SAYS(error(kBanner + "2 x 1\n1 1 1\n"), "a.mtx:2: ", "\"x\"");
  EXPECT_SAYS(error(kBanner + "2 -2 1\n1 1 1\n"), "a.mtx:2: ", "\"-2\"");
  EXPECT_SAYS(error(kBanner + "2 9223372036854775808 1\n1 1 1\n"), "a.mtx:2: ", "9223372036854775808");
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n"), "a.mtx:2: ", "square");
}

TEST_F(MatrixMarketTest, RefusesSizeLinesThatLie) {
  EXPECT_SAYS(error(kBanner + "% a\n2 2 3\n1 1 1\n2 2 1.000000\n"), "a.mtx:3: ", "promises 3 entries, the file has 2",
              "truncated");
  EXPECT_SAYS(error(kBanner + "2 2 1\n1 1 1\n2 2 1\n"), "a.mtx:2: ", "promises 1 entries, the file has 2");
  EXPECT_SAYS(error(kBanner + "2 2 1000000000000000\n1 1 1\n"),
              "a.mtx:2: ", "promises 1000000000000000 entries, the file has 1");
  EXPECT_SAYS(error(kBanner + "9223372036854775807 2 1\n1 1 1\n", ErrorKind::resources), "a.mtx", "memory");
  EXPECT_SAYS(error(kBanner + "1000000000000000 2 1\n1 1 1\n", ErrorKind::resources), "a.mtx", "memory", "available");
  write("l.mtx", kBanner + "100000000 2 1\n1 1 1\n");
  EXPECT_SAYS(error_of([&] { read_matrix(path("l.mtx")); }), "l.mtx", "1.6 GB of memory",
              "a file of this size may ask for 1 GB");
  ReadLimits small;
  small.memory_bytes = 1000;
  write("m.mtx", kBanner + "100 2 1\n1 1 1\n");
  EXPECT_SAYS(error_of([&] { read_matrix_market(path("m.mtx"), {}, small); }, ErrorKind::resources), "m.mtx", "1.62 kB",
              "1 kB");
}

TEST_F(MatrixMarketTest, NamesTheLineOfAWrongIndex) {
  const auto line = [&](const std::string& wrong) { return error(kBanner + "%\n3 4 3\n1 1 1\n\n" + wrong + "\n2 2 2\n"); };
  EXPECT_SAYS(line("4 1 1"), "a.mtx:6: ", "row index \"4\"", "from 1 to 3");
  EXPECT_SAYS(line("1 5 1"), "a.mtx:6: ", "column index \"5\"", "from 1 to 4");
  EXPECT_SAYS(line("0 1 1"), "a.mtx:6: ", "row index \"0\"");
  EXPECT_SAYS(line("1 0 1"), "a.mtx:6: ", "column index \"0\"");
  EXPECT_SAYS(line("-1 1 1"), "a.mtx:6: ", "row index \"-1\"", "out of range");
  EXPECT_SAYS(line("18446744073709551617 1 1"), "a.mtx:6: ", "out of range");
  EXPECT_SAYS(line("99999999999999999999999999 1 1"), "a.mtx:6: ", "out of range");
  EXPECT_SAYS(line("1.5 1 1"), "a.mtx:6: ", "row index \"1.5\" is no whole number");
  EXPECT_SAYS(line("x 1 1"), "a.mtx:6: ", "row index \"x\" is no whole number");
  EXPECT_SAYS(line("1 2x 1"), "a.mtx:6: ", "column index \"2x\" is no whole number");
  EXPECT_SAYS(line("1"), "a.mtx:6: ", "column index is missing");
  EXPECT_SAYS(line(std::string("\x01\x02\xfe\0zz", 6)), "a.mtx:6: ", "\\x01\\x02\\xfe\\x00zz");
}

TEST_F(MatrixMarketTest, NamesTheLineOfAWrongValue) {
  const auto line = [&](const std::string& wrong) {
    return error(kBanner + "3 4 3\r\n1 1 1\r\n" + wrong + "\r\n2 2 2\r\n");
  };
  EXPECT_SAYS(line("1 2"), "a.mtx:4: ", "value is missing");
  EXPECT_SAYS(line("1 2 x"), "a.mtx:4: ", "\"x\" is no number");
  EXPECT_SAYS(line("1 2 1.5.2"), "a.mtx:4: ", "\"1.5.2\" is no number");
  EXPECT_SAYS(line("1 2 1,5"), "a.mtx:4: ", "\"1,5\" is no number");
  EXPECT_SAYS(line("1 2 0x10"), "a.mtx:4: ", "\"0x10\" is no number");
  // SciPy of 2026 wrote this in place of -4.7677573561668e-01.
  EXPECT_SAYS(line(std::string("1 2 -4.7677573561668\0\0\0\0", 24)), "a.mtx:4: ", "cut it off", "write them as f64");
  EXPECT_SAYS(line("1 2 +-1"), "a.mtx:4: ", "\"+-1\" is no number");
  EXPECT_SAYS(line("1 2 1e"), "a.mtx:4: ", "\"1e\" is no number");
  EXPECT_SAYS(line("1 2 -"), "a.mtx:4: ", "\"-\" is no number");
  EXPECT_SAYS(line("1 2 1e309"), "a.mtx:4: ", "1e309", "too large");
  EXPECT_SAYS(line("1 2 -1D400"), "a.mtx:4: ", "too large");
  EXPECT_SAYS(line("1 2 1 7"), "a.mtx:4: ", "\"7\" follows after the last number");
  EXPECT_SAYS(line("1 2 1 % c"), "a.mtx:4: ", "\"%\" follows");
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n"), "a.mtx:3: ", "\"1\" follows");
  const std::string integer = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 ";
  EXPECT_SAYS(error(integer + "1.5\n"), "a.mtx:3: ", "\"1.5\" is no whole number", "declare the field real");
  EXPECT_SAYS(error(integer + "1d3\n"), "a.mtx:3: ", "\"1d3\" is no whole number");
  EXPECT_SAYS(error(integer + "100000000000000000000000\n"), "a.mtx:3: ", "does not fit", "declare the field real");
  EXPECT_SAYS(error(integer + "-9223372036854775809\n"), "a.mtx:3: ", "does not fit");
  EXPECT_EQ(read(integer + "-9223372036854775808\n").values, HostVector<double>{-0x1p63});
  EXPECT_EQ(read(integer + "+000000000000000000000000007\n").values, HostVector<double>{7});
}

TEST_F(MatrixMarketTest, NamesTheLineThatBreaksSymmetry) {
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 2\n1 3 3\n"), "a.mtx:4: ", "(1, 3)",
              "above its diagonal", "declare the matrix general");
  EXPECT_SAYS(error("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 2\n3 3 3\n"), "a.mtx:4: ", "diagonal",
              "row 3");
}

TEST_F(MatrixMarketTest, NamesTheFirstOfManyFaults) {
  std::string text = kBanner + "1000 1000 5000\n";
  for (int line = 3; line < 5003; ++line) text += line % 1000 == 777 ? "1 1 bad\n" : "1 1 1\n";
  EXPECT_SAYS(error(text), "a.mtx:777: ");
  text[text.rfind("1 1 bad")] = '0';  // indices are checked before values
  EXPECT_SAYS(error(text), "a.mtx:4777: ");
}

std::string file_text(const std::string& name, const std::string& text) { return name.ends_with(".gz") ? gzip(text) : text; }

std::string big_text(const std::string& symmetry, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text = "%%MatrixMarket matrix coordinate real " + symmetry + "\n700 700 30000\n";
  for (int k = 0; k < 30000; ++k) {
    std::uint64_t i = random() % 700, j = random() % (k % 3 == 0 ? 20 : 700);
    if (symmetry != "general" && i < j) std::swap(i, j);
    if (symmetry == "skew-symmetric" && i == j) (i > 0 ? j = i - 1 : i = 1);
    const double value = static_cast<double>(random() % 2000001) * 1e-7 - .1;
    text += std::to_string(i + 1) + " " + std::to_string(j + 1) + " " + std::to_string(value * (k % 7 ? 1 : 1e10)) + "\n";
  }
  return text;
}

/// The plainest reader, to compare with: sums in the order of ascending values, as the reader's are.
HostCsr read_simply(const std::string& text, double mirror_sign) {
  std::istringstream in(text.substr(text.find('\n')));
  HostCsr m;
  std::int64_t entries = 0, i = 0, j = 0;
  double value = 0;
  in >> m.rows >> m.cols >> entries;
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(static_cast<std::size_t>(m.rows));
  while (in >> i >> j >> value) {
    rows[static_cast<std::size_t>(i - 1)].emplace_back(j - 1, value);
    if (mirror_sign != 0 && i != j) rows[static_cast<std::size_t>(j - 1)].emplace_back(i - 1, mirror_sign * value);
  }
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    const auto first = static_cast<std::ptrdiff_t>(m.col_idx.size());
    for (const auto& [column, v] : row) {
      if (static_cast<std::ptrdiff_t>(m.col_idx.size()) > first && m.col_idx.back() == column) {
        m.values.back() += v;
      } else {
        m.col_idx.push_back(column);
        m.values.push_back(v);
      }
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST_F(MatrixMarketTest, AgreesWithTheSimplestReader) {
  expect_same(read(big_text("general", 1)), read_simply(big_text("general", 1), 0));
  expect_same(read(big_text("symmetric", 2)), read_simply(big_text("symmetric", 2), 1));
  expect_same(read(big_text("skew-symmetric", 3)), read_simply(big_text("skew-symmetric", 3), -1));
}

TEST_F(MatrixMarketTest, ThreadsAndPiecesDoNotChangeABit) {
  const Path file = write("a.mtx", big_text("symmetric", 4));
  const HostCsr expected = read_matrix(file);
  for (const int n : {1, 2, 5})
    for (const std::int64_t piece : {1, 5000}) {
      const ThreadCount threads(n);
      expect_same(read_matrix_market(file, {}, {piece, 40000, std::int64_t{1} << 30}), expected);
    }
}

TEST_F(MatrixMarketTest, ReadsConcatenatedGzip) {
  const Path file = write("a.mtx.gz", gzip(kBanner + "2 2 2\n1 1 1") + gzip("5\n2 2") + gzip(" 6\n"));
  expect_same(read_matrix(file), csr(2, 2, {0, 1, 2}, {0, 1}, {15, 6}));
}

TEST_F(MatrixMarketTest, RefusesDamagedGzip) {
  const std::string good = gzip(big_text("general", 5));
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, good.size() / 2, good.size() - 9, good.size() - 1}) {
    write("t.mtx.gz", good.substr(0, size));
    EXPECT_SAYS(error_of([&] { read_matrix(path("t.mtx.gz")); }), "t.mtx.gz: ", "truncated");
  }
  std::string wrong = good;
  wrong[wrong.size() - 6] = static_cast<char>(wrong[wrong.size() - 6] ^ 1);  // the checksum
  EXPECT_SAYS(error_of([&] { read_matrix(write("t.mtx.gz", wrong)); }), "t.mtx.gz: ", "damaged");
  EXPECT_SAYS(error_of([&] { read_matrix(write("t.mtx.gz", good + "garbage")); }), "t.mtx.gz: ", "damaged");
  EXPECT_SAYS(error_of([&] { read_matrix(write("t.mtx.gz", kBanner)); }), "t.mtx.gz: ", "not gzip");
  EXPECT_SAYS(error_of([&] { read_matrix(write("t.mtx", good)); }), "t.mtx: ", ".gz");
}

TEST_F(MatrixMarketTest, AFileThatIsTruncatedWhileItIsReadIsRefusedByName) {
  const std::string text = big_text("general", 7);
  const ReadLimits limits{20000, 100000, std::int64_t{1} << 30};
  for (const char* phase : {"count entries", "read entries"})
    for (const char* name : {"a.mtx", "a.mtx.gz"}) {
      SCOPED_TRACE(std::string(name) + ", " + phase);
      const Path file = write(name, file_text(name, text));
      ReadOptions options;
      options.progress = [&](std::string_view now, std::int64_t, std::int64_t) {
        if (now == phase) std::filesystem::resize_file(file, 4096);
      };
      EXPECT_SAYS(error_of([&] { read_matrix_market(file, options, limits); }), file.string(), "changed while it was read");
    }
}

TEST_F(MatrixMarketTest, ReportsProgress) {
  std::int64_t last = 0, total_seen = 0, calls = 0;
  ReadOptions options;
  options.progress = [&](std::string_view, std::int64_t done, std::int64_t total) {
    last = done;
    total_seen = total;
    ++calls;
  };
  const std::string text = big_text("general", 6);
  write("a.mtx", text);
  read_matrix_market(path("a.mtx"), options, {1000, 50000, std::int64_t{1} << 30});
  EXPECT_GT(calls, 8);
  EXPECT_EQ(last, static_cast<std::int64_t>(text.size()));
  EXPECT_EQ(total_seen, last);
}

}  // namespace
}  // namespace shardmat
