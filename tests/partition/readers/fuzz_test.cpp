// Mutations of small valid files, with fixed seeds: each must be read or refused with an Error about the
// input or about memory; a crash, another exception or a large allocation is a bug.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "kernels/base/parallel.h"
#include "partition/batched/batch_file.h"
#include "partition/readers/reader.h"
#include "partition/readers/reader_list.h"
#include "partition/vector_file.h"
#include "tests/partition/readers/test_files.h"

// HDF5 1.10 leaks 312 bytes each time it meets a damaged object header.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardmat {
namespace {

using test::gzip;
using test::Path;

class FuzzTest : public test::FilesTest {
 protected:
  FuzzTest() : threads_(thread_count()) { set_thread_count(1); }  // these files are too small to wait for threads
  ~FuzzTest() override { set_thread_count(threads_); }

  using Random = std::mt19937_64;

  static std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

  /// One to four changes: a bit, a byte, a span removed, repeated or replaced, a number made extreme, the end
  /// cut off.
  static std::string mutate(std::string bytes, Random& random) {
    static const char* const kWords[] = {"-1",
                                         "0",
                                         "99999999999",
                                         "9223372036854775807",
                                         "18446744073709551616",
                                         "nan",
                                         "1e999",
                                         "\n",
                                         "\r",
                                         " ",
                                         "%",
                                         "\n\n",
                                         "1 1 1\n",
                                         "pattern",
                                         "symmetric",
                                         "array"};
    for (std::size_t changes = 1 + below(random, 4); changes > 0; --changes) {
      const std::size_t at = below(random, bytes.size() + 1),
                        length = below(random, std::min<std::size_t>(9, bytes.size() - at + 1));
      switch (below(random, 7)) {
        case 0:
          if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
          break;
        case 1:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random());
          break;
        case 2:
          bytes.erase(at, length);
          break;
        case 3:
          bytes.insert(at, bytes.substr(below(random, bytes.size()), length));
          break;
        case 4:
          bytes.insert(at, kWords[below(random, std::size(kWords))]);
          break;
        case 5:
          bytes.replace(at, length, kWords[below(random, std::size(kWords))]);
          break;
        default:
          if (below(random, 8) == 0) bytes.resize(at);
          break;
      }
    }
    return bytes;
  }

  void fuzz(const std::string& name, const std::vector<std::string>& seeds, int mutations,
            const std::function<void(const Path&)>& read, const std::function<std::string(std::string)>& pack = {}) {
    Random random(20240601);
    int accepted = 0;
    for (int i = 0; i < mutations; ++i) {
      const std::string mutated = mutate(seeds[static_cast<std::size_t>(i) % seeds.size()], random);
      const Path file = write(name, pack ? pack(mutated) : mutated);
      try {
        read(file);
        ++accepted;
      } catch (const Error& e) {
        EXPECT_TRUE(e.kind() == ErrorKind::input || e.kind() == ErrorKind::resources) << e.what();
        EXPECT_SAYS(std::string(e.what()), name);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "mutation " << i << " of " << name << ": " << e.what();
      }
    }
    EXPECT_LT(accepted, mutations);
  }

  static const ReadLimits& limits() {
    static const ReadLimits kLimits{50, 200, 10 << 20};
    return kLimits;
  }

  int threads_;
};

const std::vector<std::string> kMatrices{
    "%%MatrixMarket matrix coordinate real general\n% comment\n\n4 5 6\n1 1 1.5\n2 2 -2e-3\n4 5 7\n3 1 "
    ".25\r\n1 5 1\n1 5 2\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 1\n2 1 12\n3 3 -5\n",
    "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1.0D+00\n3 2 -5",
    "%%MatrixMarket matrix coordinate pattern general\n10 10 4\n1 1\n2 10\n10 2\n5 5\n"};

void read_market(const Path& file, const ReadLimits& limits, bool allow_nonfinite) {
  ReadOptions options;
  options.allow_nonfinite = allow_nonfinite;
  const HostCsr m = read_matrix_market(file, options, limits);
  validate(m.view(), {allow_nonfinite, 0, "fuzz"});
}

TEST_F(FuzzTest, MatrixMarket) {
  fuzz("f.mtx", kMatrices, 4000, [](const Path& file) { read_market(file, limits(), false); });
  fuzz("f.mtx", kMatrices, 1000, [](const Path& file) { read_market(file, limits(), true); });
}

TEST_F(FuzzTest, CompressedMatrixMarket) {
  std::vector<std::string> packed;
  for (const std::string& text : kMatrices) packed.push_back(gzip(text));
  fuzz("f.mtx.gz", packed, 2000, [](const Path& file) { read_market(file, limits(), false); });
  fuzz(
      "f.mtx.gz", kMatrices, 1000, [](const Path& file) { read_market(file, limits(), false); }, gzip);
}

TEST_F(FuzzTest, Npz) {
  std::vector<std::string> seeds;
  for (const char* name : {"csr", "csc", "coo", "csr_stored", "csr_f32", "coo_duplicates"})
    seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "npz" / (std::string(name) + ".npz")));
  fuzz("f.npz", seeds, 3000, [](const Path& file) { validate(read_npz(file, {}, limits()).view()); });
}

TEST_F(FuzzTest, Vectors) {
  std::vector<std::string> arrays;
  for (const char* name : {"f8", "f4", "column", "column_fortran", "version2"})
    arrays.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "npy" / (std::string(name) + ".npy")));
  const auto read = [](const Path& file) {
    const VectorFile vector(file, "x");
    EXPECT_LE(vector.size(), 1000);
    vector.read(0, vector.size());
  };
  fuzz("f.npy", arrays, 2000, read);
  fuzz("v.mtx", {"%%MatrixMarket matrix array real general\n%\n4 1\n1.5\n-2\n\n.25\n1e3"}, 2000, read);
}

void read_batch(const std::string& argument) {
  const auto batch = open_batch(argument);
  validate(batch->read(0, batch->count()).view());
  batch->sizes(0, batch->count());
}

TEST_F(FuzzTest, GraphText) {
  const std::string graphs = "1\n1\n1\n3\n3\n", edges = "1, 2\n2, 3\n2, 1\n3, 2\r\n5, 4\n4, 5\n";
  write("T_graph_indicator.txt", graphs);
  fuzz("T_A.txt", {edges}, 3000, [](const Path& file) { read_batch(file.string()); });
  write("T_A.txt", edges);
  fuzz("T_edge_attributes.txt", {"1, 2e1\n3,4\n-5\t6\n.7, 8\n9, 10\r\n1, 1"}, 1000, [](const Path& file) {
    const auto batch = open_batch((file.parent_path() / "T").string(), {.unweighted = false, .attribute = 2});
    validate(batch->read(0, batch->count()).view());
  });
  write("T_A.txt", "");
  std::filesystem::remove(path("T_edge_attributes.txt"));
  fuzz("T_graph_indicator.txt", {graphs}, 3000, [](const Path& file) { read_batch((file.parent_path() / "T").string()); });
}

TEST_F(FuzzTest, GraphNpz) {
  std::vector<std::string> seeds;
  for (const char* name : {"graphs", "graphs_data"})
    seeds.push_back(test::bytes_of(Path(SHARDMAT_TEST_DATA) / "npz" / (std::string(name) + ".npz")));
  fuzz("f.npz", seeds, 3000, [](const Path& file) { read_batch(file.string()); });
}

TEST_F(FuzzTest, BatchFiles) {
  write_batch_file(path("f.h5"), *open_batch("batch:count=4,dim=1-3,row_nnz=0-2"));
  fuzz("f.h5", {test::bytes_of(path("f.h5"))}, 3000, [](const Path& file) { read_batch(file.string()); });
}

}  // namespace
}  // namespace shardmat
