// The distributed product from source to verified y, on however many ranks this program was started with.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "partition/generators/generator.h"
#include "partition/shard/shard_file.h"
#include "partition/vectors/vector_file.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/run/multiply.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

/// A directory that all ranks share and that goes away with the object.
class SharedDirectory {
 public:
  explicit SharedDirectory(Communicator& communicator) : communicator_(communicator) {
    path_ = communicator.broadcast(
        fmt::format("{}/shardmat_test_{}", std::filesystem::temp_directory_path().string(), ::getpid()));
    if (communicator.rank() == 0) std::filesystem::create_directories(path_);
    communicator.barrier();
  }
  ~SharedDirectory() {
    communicator_.barrier();
    std::error_code ignored;
    if (communicator_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  Communicator& communicator_;
  std::string path_;
};

MultiplyOptions options_for(const Case& c, const std::string& matrix) {
  MultiplyOptions options;
  options.matrix = matrix;
  options.backend = c.backend;
  options.load.type = c.type;
  options.load.exchange = c.exchange;
  options.iterations = 0;
  options.verify = true;
  return options;
}

MultiplyReport multiply(const Case& c, const MultiplyOptions& options) { return shardmat::multiply(context_of(c), options); }

void expect_passes(const MultiplyReport& report, std::int64_t rows) {
  ASSERT_TRUE(report.verification.has_value());
  EXPECT_TRUE(report.verification->passed) << report.verification->text();
  EXPECT_EQ(report.verification->rows_checked, rows);
  EXPECT_EQ(report.rows, rows);
}

void multiplies_generated(const Case& c) {
  for (const std::string matrix : {"elasticity:n=7", "poisson27:n=9", "rmat:scale=9", "banded:n=500", "random:n=400"}) {
    SCOPED_TRACE(matrix);
    MultiplyOptions options = options_for(c, matrix);
    options.iterations = 3;
    const MultiplyReport report = multiply(c, options);
    expect_passes(report, report.rows);
    EXPECT_GT(report.iteration.median, 0);
    EXPECT_NE(to_json(report).find("\"passed\": true"), std::string::npos);
    EXPECT_NE(to_text(report).find("verification   passed"), std::string::npos);
  }
}

void scales_and_adds(const Case& c) {
  MultiplyOptions options = options_for(c, "elasticity:n=5");
  options.alpha = -1.5;
  options.beta = 0.25;
  options.y0 = "random";
  expect_passes(multiply(c, options), 375);
  options.beta = 0;
  expect_passes(multiply(c, options), 375);
}

/// Y = αAX + βY; odd numbers of columns with sorted rows.
MultiplyOptions options_for_columns(const Case& c, const std::string& matrix, std::int64_t columns) {
  MultiplyOptions options = options_for(c, matrix);
  options.load.right_hand_sides = columns;
  options.load.sort = columns % 2 == 1 ? LocalSort::by_length : LocalSort::none;
  options.alpha = -1.5;
  options.beta = 0.25;
  options.y0 = "random";
  options.iterations = 3;
  return options;
}

void multiplies_several_columns(const Case& c) {
  for (const std::string matrix : {"elasticity:n=7", "rmat:scale=9"})
    for (const std::int64_t columns : {2, 3, 32}) {
      SCOPED_TRACE(fmt::format("{} × {}", matrix, columns));
      MultiplyOptions options = options_for_columns(c, matrix, columns);
      options.load.overlap = columns == 3 ? Overlap::automatic : Overlap::yes;
      const MultiplyReport report = multiply(c, options);
      expect_passes(report, report.rows);
      EXPECT_EQ(report.right_hand_sides, columns);
      EXPECT_GT(report.iteration.median, 0);
    }
}

void multiplies_blocks_of_columns(const Case& c) {
  for (const std::string matrix : {"elasticity:n=7", "rmat:scale=9", "random:n=300,cols=500"})
    for (const auto& [columns, block] : {std::pair{6, 2}, {9, 3}, {64, 16}, {8, 8}}) {
      SCOPED_TRACE(fmt::format("{} × {} in blocks of {}", matrix, columns, block));
      MultiplyOptions options = options_for_columns(c, matrix, columns);
      options.load.column_block = block;
      options.load.overlap = columns == 6 ? Overlap::no : Overlap::automatic;
      const MultiplyReport report = multiply(c, options);
      expect_passes(report, report.rows);
      EXPECT_EQ(report.column_block, world().size() == 1 ? columns : block);
      EXPECT_GT(report.exchange_times.median, 0);
    }
}

/// Products one behind the other, recorded into one graph, whose blocks take each other's place, of an X that changes
/// between them: their sum is right only if no block arrives before the last product is through with its place, or is older
/// than X.
void adds_blocks_of_columns(const Case& c) {
  constexpr int kProducts = 4, kLaunches = 4, kColumns = 24;
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const MatrixSource source = open_matrix("rmat:scale=13", world());
  HostVector<double> at_once;
  for (const std::int64_t block : {kColumns, 4, 8}) {  // of all; six and three blocks
    LoadOptions load;
    load.type = c.type;
    load.exchange = c.exchange;
    load.right_hand_sides = kColumns;
    load.column_block = block;
    DistributedMatrix matrix(source, context, load);
    const auto product = matrix.product(kColumns);
    Buffer xs[2];
    for (std::uint64_t seed : {0, 1}) {
      const HostVector<double> x =
          collect(*open_vector("random", "x", matrix.cols(), seed + 3, kColumns), matrix.x_rows()->ids());
      xs[seed] = Buffer(context.device(), x.size() * size_of(c.type));
      to_device(xs[seed].data(), x, c.type, stream);
    }
    const Buffer y(context.device(), product->y_bytes());
    fill_bytes(y.data(), 0, y.bytes(), stream);
    const auto add = [&](const Buffer& x, double alpha) {
      copy_on_device(product->x().data, x.data(), x.bytes(), stream);
      product->multiply(alpha, 1, product->y_view(y.data()), stream);
    };
    add(xs[0], 1);  // connects what must be before a recording
    product->wait(stream);
    Graph graph(stream, [&] {
      for (int i = 0; i < kProducts; ++i) add(xs[i % 2], 0.25 * (i + 1));
    });
    for (int i = 0; i < kLaunches; ++i) graph.launch(stream);
    product->wait(stream);
    const HostVector<double> sum = to_host(y.data(), matrix.local_rows() * kColumns, c.type, stream);
    if (block == kColumns) at_once = sum;
    const double tolerance = c.type == ValueType::f64 ? 1e-12 : 1e-4;
    for (std::size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(sum[i], at_once[i], tolerance * (1000 + std::abs(at_once[i]))) << block << ", " << i;
    world().barrier();
  }
}

void multiplies_halves(const Case& c) {
  for (const ValueType type : {ValueType::f16, ValueType::bf16}) {
    MultiplyOptions options = options_for({c.backend, type, c.exchange}, "elasticity:n=7");
    options.load.right_hand_sides = 5;
    expect_passes(multiply(c, options), 1029);
    options.load.right_hand_sides = 12;
    for (const std::int64_t block : {3, 4}) {
      options.load.column_block = block;
      expect_passes(multiply(c, options), 1029);
    }
  }
}

/// Rows that need no x of others are multiplied while it moves, and the others after that: in a product of their own, or, of
/// packed rows, in slices that wait.
void overlaps(const Case& c) {
  double eigenvalue = 0;
  std::vector<std::string> kernels = {"auto"};
  if (c.backend == BackendChoice::cuda) kernels.emplace_back("csr_vector");
  for (const std::string& kernel : kernels)
    for (const bool overlap : {true, false})
      for (const auto sort : {LocalSort::none, LocalSort::by_length}) {
        MultiplyOptions options = options_for(c, "elasticity:n=16");
        options.load.plan.kernel = kernel;
        options.load.overlap = overlap ? Overlap::yes : Overlap::no;
        options.load.sort = sort;
        options.beta = 0.5;
        options.y0 = "random";
        options.iterations = 40;  // on GPUs eight in a graph
        const MultiplyReport report = multiply(c, options);
        expect_passes(report, report.rows);
        const bool several = world().size() > 1 && world().size() <= 3;  // with more, nearly all rows are at a boundary
        if (overlap && several) {
          EXPECT_GE(report.overlapped.min, 0.5);
        }
        if (!overlap || world().size() == 1) {
          EXPECT_EQ(report.overlapped.max, 0);
        }
        options.mode = Mode::power;
        options.beta = 0;
        options.y0.clear();
        options.iterations = 10;
        const double found = *multiply(c, options).eigenvalue;
        if (eigenvalue == 0) eigenvalue = found;
        EXPECT_NEAR(found, eigenvalue, 1e-5 * eigenvalue);
      }
}

void sorts_locally(const Case& c) {
  SharedDirectory directory(world());
  MultiplyOptions options = options_for(c, "rmat:scale=8");
  options.load.sort = LocalSort::by_length;
  options.output = directory.file("sorted.npy");
  expect_passes(multiply(c, options), 256);
  options.load.sort = LocalSort::none;
  options.output = directory.file("plain.npy");
  expect_passes(multiply(c, options), 256);
  const auto sorted = VectorFile(directory.file("sorted.npy"), "y").read(0, 256);
  const auto plain = VectorFile(directory.file("plain.npy"), "y").read(0, 256);
  for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_NEAR(sorted[i], plain[i], 1e-4 * (1 + std::abs(plain[i]))) << i;
}

void handles_odd_shapes(const Case& c) {
  SharedDirectory directory(world());
  for (const test::NamedMatrix& zoo : test::matrix_zoo()) {
    SCOPED_TRACE(zoo.name);
    const std::string path = directory.file("zoo.h5");
    world().run_agreed([&] {
      if (world().rank() != 0) return;
      WriteOptions write;
      write.parts = {2};
      write_shard_file(path, *make_memory_source(std::make_shared<const HostCsr>(zoo.matrix), zoo.name), write);
    });
    expect_passes(multiply(c, options_for(c, path)), zoo.matrix.rows);
  }
}

void serves_globally_sorted_files(const Case& c) {
  SharedDirectory directory(world());
  const auto rows = make_memory_source(std::make_shared<const HostCsr>(test::matrix_zoo()[13].matrix), "zoo");
  HostVector<double> y[2];
  for (const bool sorted : {false, true}) {
    const std::string path = directory.file(sorted ? "sorted.h5" : "plain.h5");
    world().run_agreed([&] {
      WriteOptions write;
      write.order = sorted ? RowOrder::by_length : RowOrder::as_source;
      if (world().rank() == 0) write_shard_file(path, *rows, write);
    });
    MultiplyOptions options = options_for(c, path);
    options.output = directory.file("y.h5");
    expect_passes(multiply(c, options), rows->rows());
    y[sorted] = VectorFile(options.output, "y").read(0, rows->rows());
    world().barrier();
  }
  for (std::size_t i = 0; i < y[0].size(); ++i) ASSERT_NEAR(y[0][i], y[1][i], 1e-4 * (1 + std::abs(y[0][i]))) << i;
}

void finds_largest_eigenvalue(const Case& c) {
  MultiplyOptions options = options_for(c, "poisson27:n=4,uniform");
  options.mode = Mode::power;
  options.iterations = 400;
  const MultiplyReport report = multiply(c, options);
  // 27·δ - T⊗T⊗T with T = tridiag(1, 1, 1): eigenvalues 27 - Π(1 + 2 cos(k π / 5)); largest where the product is lowest.
  double lowest = 1e9;
  for (int i = 1; i <= 4; ++i)
    for (int j = 1; j <= 4; ++j)
      for (int k = 1; k <= 4; ++k) {
        const auto t = [](int m) { return 1 + 2 * std::cos(m * std::numbers::pi / 5); };
        lowest = std::min(lowest, t(i) * t(j) * t(k));
      }
  ASSERT_TRUE(report.eigenvalue.has_value());
  EXPECT_NEAR(*report.eigenvalue, 27 - lowest, c.type == ValueType::f64 ? 1e-6 : 1e-3);
}

void repeats_power_iteration_bit_for_bit(const Case& c) {
  MultiplyOptions options = options_for(c, "elasticity:n=6");
  options.mode = Mode::power;
  options.iterations = 7;
  options.load.plan.measure = false;  // which might choose another kernel the second time
  const MultiplyReport first = multiply(c, options), second = multiply(c, options);
  EXPECT_EQ(*first.eigenvalue, *second.eigenvalue);
  EXPECT_EQ(*first.residual, *second.residual);
}

/// xᵀAx and ‖Ax‖² for x = 1: from the sums of rows.
void sums_dot_products(const Case& c) {
  MultiplyOptions options = options_for(c, "poisson27:n=9");
  options.mode = Mode::dots;
  options.x = "ones";
  options.iterations = 20;
  options.load.plan.measure = false;  // which might choose another kernel the second time
  const MultiplyReport report = multiply(c, options);
  double xy = 0, yy = 0;
  const HostCsr matrix = make_generator("poisson27:n=9")->read_rows(0, 729);
  for (std::size_t i = 0; i < 729; ++i) {
    double y = 0;
    for (auto k = static_cast<std::size_t>(matrix.row_ptr[i]); k < static_cast<std::size_t>(matrix.row_ptr[i + 1]); ++k)
      y += c.type == ValueType::f32 ? static_cast<double>(static_cast<float>(matrix.values[k])) : matrix.values[k];
    xy += y, yy += y * y;
  }
  ASSERT_TRUE(report.xy.has_value());
  const double tolerance = c.type == ValueType::f64 ? 1e-12 : 1e-5;
  EXPECT_NEAR(*report.xy, xy, tolerance * std::abs(xy));
  EXPECT_NEAR(*report.yy, yy, tolerance * yy);
  EXPECT_EQ(report.sums, world().size() == 1                                  ? "none"
                         : c.backend == BackendChoice::host                   ? "MPI"
                         : context_of(c).nccl()->why_no_peer_access().empty() ? "kernel"
                                                                              : "NCCL");
  const MultiplyReport again = multiply(c, options);
  EXPECT_EQ(*report.xy, *again.xy);
}

/// Rows of another source, spoilt in one place: what a wrong kernel or a wrong file would compute.
class Spoilt final : public RowSource {
 public:
  enum class Fault { changed_value, skipped_row, swapped_column };
  Spoilt(std::shared_ptr<RowSource> rows, Fault fault) : rows_(std::move(rows)), fault_(fault) {}
  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t cols() const override { return rows_->cols(); }
  std::string name() const override { return "spoilt"; }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(end - begin));
    const HostCsr part = read_rows(begin, end);
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = part.row_ptr[i + 1] - part.row_ptr[i];
    return lengths;
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr part = rows_->read_rows(begin, end);
    const std::int64_t row = rows() / 2 - begin;
    if (row < 0 || row >= part.rows) return part;
    const auto first = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(row)]);
    const auto length = static_cast<std::size_t>(part.row_ptr[static_cast<std::size_t>(row) + 1]) - first;
    if (fault_ == Fault::changed_value) part.values[first] *= 1 + 1e-3;
    if (fault_ == Fault::swapped_column) std::swap(part.values[first], part.values[first + 1]);
    if (fault_ == Fault::skipped_row) {
      part.col_idx.erase(part.col_idx.begin() + static_cast<std::ptrdiff_t>(first),
                         part.col_idx.begin() + static_cast<std::ptrdiff_t>(first + length));
      part.values.erase(part.values.begin() + static_cast<std::ptrdiff_t>(first),
                        part.values.begin() + static_cast<std::ptrdiff_t>(first + length));
      for (auto i = static_cast<std::size_t>(row) + 1; i < part.row_ptr.size(); ++i)
        part.row_ptr[i] -= static_cast<std::int64_t>(length);
    }
    return part;
  }

 private:
  std::shared_ptr<RowSource> rows_;
  Fault fault_;
};

VerifyResult verify_spoilt(const Case& c, std::optional<Spoilt::Fault> fault, VerifyMode mode) {
  Context& context = context_of(c);
  const MatrixSource truth = open_matrix("random:n=40000,row_nnz=8", world());
  MatrixSource loaded;
  loaded.rows = make_generator("random:n=40000,row_nnz=8");
  if (fault) loaded.rows = std::make_unique<Spoilt>(std::move(loaded.rows), *fault);
  LoadOptions load;
  load.type = c.type;
  load.exchange = c.exchange;
  load.column_sums_above = -1;
  load.method = "rows";  // so that a row more or less does not move the parts
  DistributedMatrix matrix(loaded, context, load);
  const auto product = matrix.product();
  // The sums must be those of the truth: a kernel's fault does not change the file.
  const DistributedMatrix clean(truth, context, load);
  const auto x = open_vector("random", "x", matrix.cols(), 3);
  Stream& stream = context.stream();
  Buffer y(context.device(), static_cast<std::size_t>(matrix.local_rows()) * size_of(c.type));
  to_device(product->x().data, collect(*x, matrix.x_rows()->ids()), c.type, stream);
  product->multiply(1, 0, product->y_view(y.data()), stream);
  product->wait(stream);
  const HostVector<double> result = to_host(y.data(), matrix.local_rows(), c.type, stream);
  return verify(clean, truth, {1, 0, *x, nullptr, 1, result}, mode);
}

void verification_fires(const Case& c) {
  for (const VerifyMode mode : {VerifyMode::full, VerifyMode::sampled}) {
    EXPECT_TRUE(verify_spoilt(c, {}, mode).passed);
    for (const auto fault : {Spoilt::Fault::changed_value, Spoilt::Fault::skipped_row, Spoilt::Fault::swapped_column}) {
      // In f32 a change of 1e-3 in one value hides in the rounding of a whole rank's column sums: only full finds it.
      if (mode == VerifyMode::sampled && c.type == ValueType::f32) continue;
      const VerifyResult result = verify_spoilt(c, fault, mode);
      EXPECT_FALSE(result.passed) << static_cast<int>(fault) << (mode == VerifyMode::full ? " full" : " sampled");
      if (mode == VerifyMode::full) {
        EXPECT_EQ(result.wrong_rows, 1);
        EXPECT_EQ(result.worst_row, 20000);
        EXPECT_NE(result.text().find("FAILED: 1 of 40,000 rows wrong"), std::string::npos) << result.text();
      }
    }
  }
}

void nan_fails(const Case& c) {
  Context& context = context_of(c);
  const MatrixSource source = open_matrix("banded:n=50", world());
  const DistributedMatrix matrix(source, context, {});
  const auto x = open_vector("ones", "x", 50, 1);
  HostVector<double> y(static_cast<std::size_t>(matrix.local_rows()));
  std::fill(y.begin(), y.end(), std::nan(""));
  const VerifyResult result = verify(matrix, source, {1, 0, *x, nullptr, 1, y}, VerifyMode::full);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.wrong_rows, 50);
}

/// The columns of parts are renumbered, which every kernel must follow. Some kernels refuse some of the matrices;
/// bcsr_cusparse takes the diagonal, whose parts have numbers of rows and columns that blocks divide.
void every_kernel_multiplies(const Case& c) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.backend != context_of(c).device().backend) continue;
    int multiplied = 0;
    for (const std::string matrix : {"elasticity:n=5", "poisson27:n=6", "banded:n=100", "diagonals:n=96,count=1"}) {
      SCOPED_TRACE(matrix + " " + std::string(kernel.name));
      MultiplyOptions options = options_for(c, matrix);
      options.load.plan.kernel = kernel.name;
      options.load.plan.measure = false;
      try {
        const MultiplyReport report = multiply(c, options);
        expect_passes(report, report.rows);
        ++multiplied;
      } catch (const Error& error) {
        const std::string said = error.what();
        EXPECT_TRUE(said.find("does not suit this matrix") != std::string::npos ||
                    said.find("cannot take this matrix") != std::string::npos)
            << said;
      }
    }
    EXPECT_GT(multiplied, 0) << kernel.name;
  }
}
TEST(Multiply, EveryKernel) { every_kernel_multiplies(kHost64); }
TEST(GpuMultiply, EveryKernel) { on_gpus(every_kernel_multiplies, kCuda64); }
TEST(MultiGpuMultiply, EveryKernel) { on_gpus(every_kernel_multiplies, kCuda64); }

// Host, each test in f64 with what auto takes, in f32 with all-gather and in f64 with the halo; on GPUs the same under Gpu
// (one rank) and MultiGpu (one GPU a rank), there with peer, too.
#define SHARDMAT_ON_ALL_BACKENDS(name, check)                       \
  TEST(Multiply, name##F64) { check(kHost64); }                     \
  TEST(Multiply, name##F32) { check(kHost32); }                     \
  TEST(Multiply, name##Halo) { check(kHostHalo); }                  \
  TEST(GpuMultiply, name##F64) { on_gpus(check, kCuda64); }         \
  TEST(GpuMultiply, name##F32) { on_gpus(check, kCuda32); }         \
  TEST(MultiGpuMultiply, name##F64) { on_gpus(check, kCuda64); }    \
  TEST(MultiGpuMultiply, name##F32) { on_gpus(check, kCuda32); }    \
  TEST(MultiGpuMultiply, name##Halo) { on_gpus(check, kCudaHalo); } \
  TEST(MultiGpuMultiply, name##Peer) { on_peers(check, kCudaPeer); }

SHARDMAT_ON_ALL_BACKENDS(Generated, multiplies_generated)
SHARDMAT_ON_ALL_BACKENDS(AlphaBeta, scales_and_adds)
SHARDMAT_ON_ALL_BACKENDS(Overlap, overlaps)
SHARDMAT_ON_ALL_BACKENDS(Columns, multiplies_several_columns)
SHARDMAT_ON_ALL_BACKENDS(ColumnBlocks, multiplies_blocks_of_columns)
SHARDMAT_ON_ALL_BACKENDS(ColumnBlocksInTurn, adds_blocks_of_columns)
SHARDMAT_ON_ALL_BACKENDS(Halves, multiplies_halves)
SHARDMAT_ON_ALL_BACKENDS(LocalSort, sorts_locally)
SHARDMAT_ON_ALL_BACKENDS(OddShapes, handles_odd_shapes)
SHARDMAT_ON_ALL_BACKENDS(GlobalSort, serves_globally_sorted_files)
SHARDMAT_ON_ALL_BACKENDS(Dots, sums_dot_products)
SHARDMAT_ON_ALL_BACKENDS(Power, finds_largest_eigenvalue)
SHARDMAT_ON_ALL_BACKENDS(PowerRepeats, repeats_power_iteration_bit_for_bit)
SHARDMAT_ON_ALL_BACKENDS(VerificationFires, verification_fires)
SHARDMAT_ON_ALL_BACKENDS(NanFails, nan_fails)

/// 262,144 × 64 in f64: of two ranks each has 67 MB of X, sends and receives as much, and needs 92 MB for Y and the matrix.
TEST(MultiGpuMultiply, ColumnBlocksWhereAllDoNotFit) {
  if (world().size() != 2) GTEST_SKIP() << "needs two ranks";
  if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
  const Device device = context_of(kCudaHalo).device();
  const Buffer taken(device, static_cast<std::size_t>(available_memory(device) - 330'000'000));
  MultiplyOptions options = options_for(kCudaHalo, "random:n=262144,row_nnz=16");
  options.load.right_hand_sides = 64;
  options.load.plan.kernel = "csr_balanced";
  const MultiplyReport report = multiply(kCudaHalo, options);
  expect_passes(report, 262144);
  EXPECT_LE(report.column_block, 32);
  EXPECT_EQ(report.column_block_why, "more do not fit");
}

TEST(Multiply, SameErrorOnEveryRank) {
  MultiplyOptions options = options_for(kHost64, "/nowhere/bar.h5");
  try {
    multiply(kHost64, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("/nowhere/bar.h5"), std::string::npos);
  }
  options = options_for(kHost64, "random:n=20,cols=30");
  options.mode = Mode::power;
  EXPECT_THROW(multiply(kHost64, options), Error);
  options = options_for(kHost64, "banded:n=20");
  for (const auto& [columns, block] : {std::pair{1, 2}, {12, 1}, {12, 5}, {12, 24}}) {
    options.load.right_hand_sides = columns;
    options.load.column_block = block;
    EXPECT_NE(error_of(ErrorKind::usage, [&] { multiply(kHost64, options); }).find("blocks of"), std::string::npos);
  }
  options = options_for(kHost64, "banded:n=20");
  options.x = "/nowhere/x.npy";
  EXPECT_THROW(multiply(kHost64, options), Error);
}

}  // namespace
}  // namespace shardmat
