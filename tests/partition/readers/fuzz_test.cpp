// Every reader that works within the process, given mutations of small valid files.
#include <gtest/gtest.h>

#include <vector>

#include "partition/batched/batch_file.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/reader.h"
#include "partition/readers/reader_list.h"
#include "partition/vectors/vector_file.h"
#include "partition/writers/writer.h"
#include "tests/support/mutations.h"

namespace shardmat {
namespace {

using test::gzip;
using test::Path;
using test::with_zip_checksums;

class FuzzTest : public test::MutationTest {
 protected:
  static const ReadLimits& limits() {
    static const ReadLimits kLimits{50, 200, 10 << 20};
    return kLimits;
  }
  static std::vector<std::string> npz(std::initializer_list<const char*> names) {
    std::vector<std::string> seeds;
    for (const char* name : names)
      seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "npz" / (std::string(name) + ".npz")));
    return seeds;
  }
};

const std::vector<std::string> kMatrices{
    "%%MatrixMarket matrix coordinate real general\n% comment\n\n4 5 6\n1 1 1.5\n2 2 -2e-3\n4 5 7\n3 1 "
    ".25\r\n1 5 1\n1 5 2\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 1\n2 1 12\n3 3 -5\n",
    "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1.0D+00\n3 2 -5",
    "%%MatrixMarket matrix coordinate pattern general\n10 10 4\n1 1\n2 10\n10 2\n5 5\n",
    "\xef\xbb\xbf%%MatrixMarket matrix coordinate unsigned-integer general\r\n2 3 3\r\n1 1 7\r\n2 3 250\r\n1 2 4\r\n\x1a",
    "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 4\n1 1 0\n2 1 4\n3 2 -2.5\n3 3 0\n"};

void read_market(const Path& file, const ReadLimits& limits, bool allow_nonfinite) {
  ReadOptions options;
  options.allow_nonfinite = allow_nonfinite;
  const HostCsr m = read_matrix_market(file, options, limits);
  validate(m.view(), {allow_nonfinite, 0, "fuzz"});
}

void read_batch(const std::string& argument) {
  const auto batch = open_batch(argument);
  validate(batch->read(0, batch->count()).view());
  batch->sizes(0, batch->count());
}

TEST_F(FuzzTest, MatrixMarket) {
  mutate("f.mtx", kMatrices, [](const Path& file) { read_market(file, limits(), false); });
  mutate("f.mtx", kMatrices, [](const Path& file) { read_market(file, limits(), true); });
}

TEST_F(FuzzTest, CompressedMatrixMarket) {
  std::vector<std::string> packed;
  for (const std::string& text : kMatrices) packed.push_back(gzip(text));
  packed.push_back(packed.front() + std::string(16, '\0'));
  mutate("f.mtx.gz", packed, [](const Path& file) { read_market(file, limits(), false); });
  mutate(
      "f.mtx.gz", kMatrices, [](const Path& file) { read_market(file, limits(), false); }, gzip);
}

TEST_F(FuzzTest, Petsc) {
  std::vector<std::string> seeds;
  for (const char* name : {"objects", "block", "dense"})
    seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "petsc" / (std::string(name) + ".petsc")));
  const auto read = [](const Path& file) {
    for (const FileObject& object : list_objects(file))
      if (object.matrix) validate(read_matrix(file.string() + ":" + object.name).view());
    validate(read_matrix(file).view());
  };
  mutate("f.petsc", seeds, read, {}, 2500);
  mutate(
      "v.petsc", {seeds[0]},
      [](const Path& file) {
        const VectorFile vector(file.string() + ":3", "x");
        vector.read(0, vector.size());
      },
      {}, 1000);
}

TEST_F(FuzzTest, CsrArrays) {
  // 2 × 3 with the rows {0: 1.5, 2: -2} and {1: 0}, in two layouts.
  const auto bytes = [](const auto&... arrays) {
    return (std::string(reinterpret_cast<const char*>(arrays.data()), arrays.size() * sizeof arrays[0]) + ...);
  };
  const std::vector<double> values{1.5, -2, 0};
  const std::vector<std::string> seeds{
      "%%Shardmat CSR rows=2 cols=3 nonzeros=3 offsets=i64 columns=i32 values=f64\n" +
          bytes(std::vector<std::int64_t>{0, 2, 3}, std::vector<std::int32_t>{0, 2, 1}, values),
      "%%Shardmat CSR rows=2 cols=3 nonzeros=3 offsets=i32 columns=i64 values=f32   \n" +
          bytes(std::vector<std::int32_t>{0, 2, 3}, std::vector<std::int64_t>{2, 0, 1},
                std::vector<float>(values.begin(), values.end()))};
  mutate(
      "f.csr", seeds, [](const Path& file) { validate(read_matrix(file).view()); }, {}, 2500);
}

TEST_F(FuzzTest, Triplets) {
  const auto read = [](const Path& file) {
    ReadOptions options;
    options.choices = {"triplets", 0, "lower"};
    validate(read_by_entries(*open_entries(file, options, limits()), options, limits()).view());
  };
  mutate("f.ijv", {"# text\n1 0 .5\n2,2,-1e3\n\n2 1 1D0"}, read, {}, 1500);
}

TEST_F(FuzzTest, Matlab5) {
  std::vector<std::string> seeds;
  for (const char* name : {"v6", "big", "v7", "octave7"})
    seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "mat" / (std::string(name) + ".mat")));
  const auto read = [](const Path& file) {
    list_objects(file);
    validate(read_matrix(file.string() + ":K").view());
  };
  mutate("f.mat", seeds, read, {}, 2000);
  const auto read_vector = [](const Path& file) {
    const VectorFile vector(file.string() + ":b", "x");
    vector.read(0, vector.size());
  };
  mutate("v.mat", {seeds[0]}, read_vector, {}, 1000);
  const auto read_logical = [](const Path& file) {
    const VectorFile vector(file.string() + ":l", "x");
    vector.read(0, vector.size());
  };
  mutate("l.mat", {test::bytes_of(Path(SHARDMAT_TEST_DATA) / "mat" / "octave6.mat"), seeds[3]}, read_logical, {}, 500);
}

TEST_F(FuzzTest, FemText) {
  const auto read = [](const Path& file) { validate(read_matrix(file).view()); };
  mutate("f_STIF1.mtx",
         {"** text\n1,1,1,1,2.5\n2,1,1,1,-1\n2,1,2,1,3e0\n", "1 1 2.5\n3 1 -1\n3 3 1D1\n",
          "\xef\xbb\xbf-2 1 -2 1 2.5\r\n7 3 -2 1 -1\r\n7 3 7 3 1e36\r\n\x1a"},
         read, {}, 1000);
  write("f.dof", "1.1\n1.2\n2.1\n");
  mutate("f.sti", {"1 1 4.0\n1 3 -1.5\n2 2 5.\n3 3 6.E0\n"}, read, {}, 1000);
  write("d.sti", "1 1 4.0\n1 3 -1.5\n2 2 5.\n3 3 6.E0\n");
  mutate(
      "d.dof", {"1.1\n1.2\n2.1\n"},
      [](const Path& file) {
        try {
          read_matrix(Path(file).replace_extension(".sti"));
        } catch (const Error& error) {  // names either file
          throw Error(error.kind(), std::string("d.dof ") + error.what());
        }
      },
      {}, 500);
}

TEST_F(FuzzTest, FreeFem) {
  std::vector<std::string> seeds{
      "# Sparse Matrix (Morse)\n# n m\n2 2 1  2\n        1         1 1.5\n        2         1 7\n"};
  for (const char* name : {"A", "S", "R"})
    seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "freefem" / (std::string(name) + ".txt")));
  ReadOptions options;
  options.choices.format = "freefem";
  mutate(
      "f.txt", seeds, [&](const Path& file) { validate(read_matrix(file, options).view()); }, {}, 1000);
  mutate(
      "v.txt", {test::bytes_of(Path(SHARDMAT_TEST_DATA) / "freefem" / "x.txt")},
      [](const Path& file) {
        const VectorFile vector(file, "x");
        vector.read(0, vector.size());
      },
      {}, 1000);
}

TEST_F(FuzzTest, HarwellBoeing) {
  const std::string title(72, 't'), line2 = "\n             3             1             1             1             0\n",
                                    formats = "\n(8I3)           (8I3)           (4E10.3)            \n";
  const std::string real = title + line2 + "RSA                       3             3             4             0" +
                           formats + "  1  3  4  5\n  1  3  2  3\n 1.500E+00 2.000D+00    -3.0+1  4.00\n";
  std::string pattern = real;
  pattern.replace(pattern.find("RSA"), 3, "pua");
  pattern.replace(pattern.find("3             1             1             1"), 43,
                  "2             1             1             0");
  pattern.resize(pattern.find(" 1.500E"));
  ReadOptions options;
  options.choices.format = "harwell-boeing";
  mutate(
      "f.rb", {real, pattern}, [&](const Path& file) { validate(read_matrix(file, options).view()); }, {}, 2000);
  std::string vectors = real;
  vectors.replace(vectors.find("3             1             1             1             0"), 57,
                  "5             1             1             1             2");
  const std::size_t formats_end = vectors.find("  1  3  4  5");
  vectors.insert(formats_end - 1, "(4F6.2)");
  vectors.insert(vectors.find("  1  3  4  5"), "F X                       1             0\n");
  vectors += "  1.00  2.00  3.00\n  4.00  5D-1   .25\n";
  const std::string auxiliary = title + "\nrhsrd FULL_R2  r             3             2             6\n(4F6.2)\n" +
                                "  1.00  2.00  3.00  4.00\n  5.00-60.00\n";
  for (const auto& [seed, object] : {std::pair(vectors, ":solution"), std::pair(auxiliary, ":rhs2")}) {
    write("f.rb", seed);
    EXPECT_EQ(VectorFile(path("f.rb").string() + object, "x").read(2, 3).front(), seed == vectors ? 0.25 : -60);
    mutate(
        "v.rb", {seed},
        [&](const Path& file) {
          list_objects(file);
          const VectorFile vector(file.string() + object, "x");
          vector.read(0, vector.size());
        },
        {}, 1000);
  }
}

TEST_F(FuzzTest, Hypre) {
  const auto read = [](const Path& file) { validate(read_matrix(file).view()); };
  write_matrix(
      path("g.00000.bin"),
      *make_memory_source(
          std::make_shared<const HostCsr>(read_matrix(write("g.00000", "0 2 0 3\n0 0 1\n2 3 -5e-1\n1 2 7\n"))), "g"));
  const std::vector<std::string> seeds{test::bytes_of(path("g.00000")), test::bytes_of(path("g.00000.bin"))};
  mutate("f.00000", {seeds[0]}, read, {}, 1000);
  mutate("f.00000.bin", {seeds[1]}, read, {}, 1000);
  const auto read_vector = [](const Path& file) {
    const VectorFile vector(file, "x");
    vector.read(0, vector.size());
  };
  mutate("v.00000", {"0 2\n0 1\n2 -.5\n1 3e2\n"}, read_vector, {}, 1000);
}

#ifdef SHARDMAT_HAVE_LIBZIP
TEST_F(FuzzTest, Npz) {
  const auto read = [](const Path& file) { validate(read_npz(file, {}, limits()).view()); };
  mutate("f.npz", npz({"csr", "csc", "coo", "csr_stored", "csr_f32", "coo_duplicates", "bsr", "dia"}), read);
  mutate("f.npz", npz({"csr_stored", "csc_stored", "coo_stored"}), read, with_zip_checksums);
}

TEST_F(FuzzTest, GraphNpz) {
  mutate("f.npz", npz({"graphs", "graphs_data"}), [](const Path& file) { read_batch(file.string()); });
  mutate(
      "f.npz", npz({"graphs_stored"}), [](const Path& file) { read_batch(file.string()); }, with_zip_checksums);
}
#endif

TEST_F(FuzzTest, Vectors) {
  std::vector<std::string> arrays;
  for (const char* name : {"f8", "f4", "column", "column_fortran", "version2", "big_endian"})
    arrays.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "npy" / (std::string(name) + ".npy")));
  const auto read = [](const Path& file) {
    const VectorFile vector(file, "x");
    EXPECT_LE(vector.size(), 1000);
    vector.read(0, vector.size());
  };
  mutate("f.npy", arrays, read);
  mutate("v.txt", {"# text\n1.5\n-2, \n\n  .25\n1e3"}, read, {}, 1000);
  mutate("v.mtx", {"%%MatrixMarket matrix array real general\n%\n4 1\n1.5\n-2\n\n.25\n1e3"}, read);
}

TEST_F(FuzzTest, GraphText) {
  const std::string graphs = "1\n1\n1\n3\n3\n", edges = "1, 2\n2, 3\n2, 1\n3, 2\r\n5, 4\n4, 5\n";
  write("T_graph_indicator.txt", graphs);
  mutate("T_A.txt", {edges}, [](const Path& file) { read_batch(file.string()); });
  write("T_A.txt", edges);
  mutate("T_edge_attributes.txt", {"1, 2e1\n3,4\n-5\t6\n.7, 8\n9, 10\r\n1, 1"}, [](const Path& file) {
    const auto batch = open_batch((file.parent_path() / "T").string(), {.unweighted = false, .attribute = 2});
    validate(batch->read(0, batch->count()).view());
  });
  write("T_A.txt", "");
  std::filesystem::remove(path("T_edge_attributes.txt"));
  mutate("T_graph_indicator.txt", {graphs}, [](const Path& file) { read_batch((file.parent_path() / "T").string()); });
}

TEST_F(FuzzTest, Lists) {
  write("a.mtx", kMatrices[1]);
  write("b.mtx", kMatrices[3]);
  mutate("list.txt", {"# two of them\na.mtx\n\nb.mtx\n", "b.mtx\r\nb.mtx"},
         [](const Path& file) { read_batch(file.string()); });
}

TEST_F(FuzzTest, BatchFiles) {
  write_batch_file(path("f.h5"), *open_batch("batch:count=4,dim=1-3,row_nnz=0-2"));
  // Each file is first checked by a program of its own: 1000 take half a minute.
  mutate(
      "f.h5", {test::bytes_of(path("f.h5"))}, [](const Path& file) { read_batch(file.string()); }, {}, 1000);
}

}  // namespace
}  // namespace shardmat
