// Batches of small matrices over the ranks: resident and streamed, all types and shapes of operation, what is refused.
#include "runtime/batched/batched_multiply.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "partition/vectors/vector_file.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

BatchedOptions options_for(std::int64_t columns) {
  BatchedOptions options;
  options.batch = "batch:count=300,dim=0-40,row_nnz=0-6,seed=3";
  options.columns = columns;
  options.iterations = 2;
  options.verify = true;
  return options;
}

void expect_right(const BatchedReport& report, std::int64_t count) {
  ASSERT_TRUE(report.verification.has_value());
  EXPECT_TRUE(report.verification->passed) << to_text(report);
  EXPECT_EQ(report.verification->rows_checked, report.rows);
  EXPECT_EQ(report.count, count);
  EXPECT_DOUBLE_EQ(report.rank_matrices.mean * world().size(), static_cast<double>(count));
  EXPECT_FALSE(report.kernel.empty());
  EXPECT_NE(to_json(report).find("\"rows_checked\""), std::string::npos);
  EXPECT_NE(to_text(report).find("passed"), std::string::npos);
}

void multiplies(BackendChoice backend) {
  Context context(world(), backend);
  for (const bool stream : {false, true})
    for (const ValueType type : {ValueType::f32, ValueType::f64, ValueType::bf16})
      for (const std::int64_t columns : {1, 8, 33}) {
        BatchedOptions options = options_for(columns);
        options.type = type;
        options.stream = stream;
        options.chunk_bytes = 20'000;
        options.transpose = columns == 8;
        options.bias = columns == 33 ? "random" : "";
        options.relu = columns == 33;
        options.format = type == ValueType::f64 ? BatchFormat::coo : BatchFormat::csr;
        const BatchedReport report = multiply_batched(context, options);
        expect_right(report, 300);
        EXPECT_EQ(report.streaming.has_value(), stream);
        if (stream) {
          EXPECT_GT(report.streaming->chunks, 2);
        } else {
          EXPECT_GT(report.product.median, 0);
        }
      }
}

/// Whatever the ranks and however it goes through them, the file is the same, bit for bit.
void writes_the_same(BackendChoice backend) {
  Context context(world(), backend);
  const std::string directory = world().broadcast(
      (std::filesystem::temp_directory_path() / ("shardmat_batched_" + std::to_string(::getpid()))).string());
  if (world().rank() == 0) std::filesystem::create_directory(directory);
  world().barrier();
  HostVector<double> expected;
  for (const bool stream : {false, true}) {
    BatchedOptions options = options_for(5);
    options.stream = stream;
    options.chunk_bytes = 10'000;
    options.plan.kernel = backend == BackendChoice::host ? "csr_host" : "rows";
    options.output = directory + (stream ? "/streamed.npy" : "/resident.h5");
    const BatchedReport report = multiply_batched(context, options);
    expect_right(report, 300);
    EXPECT_EQ(report.output, options.output);
    world().barrier();
    const HostVector<double> y = VectorFile(options.output, "y", 5).read(0, report.rows);
    if (stream) {
      EXPECT_EQ(y, expected);
    }
    expected = y;
  }
  world().barrier();
  if (world().rank() == 0) std::filesystem::remove_all(directory);
}

void runs_on_gpus(void (*check)(BackendChoice)) {
  if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
  check(BackendChoice::cuda);
}

TEST(BatchedMultiply, Multiplies) { multiplies(BackendChoice::host); }
TEST(BatchedMultiply, WritesTheSame) { writes_the_same(BackendChoice::host); }
TEST(GpuBatchedMultiply, Multiplies) { runs_on_gpus(multiplies); }
TEST(GpuBatchedMultiply, WritesTheSame) { runs_on_gpus(writes_the_same); }
TEST(MultiGpuBatchedMultiply, Multiplies) { runs_on_gpus(multiplies); }
TEST(MultiGpuBatchedMultiply, WritesTheSame) { runs_on_gpus(writes_the_same); }

TEST(BatchedMultiply, FewerMatricesThanRanks) {
  Context context(world(), BackendChoice::host);
  for (const bool stream : {false, true})
    for (const char* batch :
         {"batch:count=1,dim=30,row_nnz=3", "batch:count=2,dim=0,row_nnz=1", "batch:count=5,dim=1,row_nnz=1"}) {
      BatchedOptions options = options_for(4);
      options.batch = batch;
      options.stream = stream;
      const BatchedReport report = multiply_batched(context, options);
      EXPECT_TRUE(report.verification->passed) << batch;
    }
}

TEST(BatchedMultiply, Refuses) {
  Context context(world(), BackendChoice::host);
  const auto message = [&](ErrorKind kind, auto change) {
    BatchedOptions options = options_for(4);
    change(options);
    return error_of(kind, [&] { multiply_batched(context, options); });
  };
  EXPECT_NE(message(ErrorKind::usage, [](BatchedOptions& o) { o.alpha = 0; }).find("alpha = 0"), std::string::npos);
  EXPECT_NE(message(ErrorKind::usage, [](BatchedOptions& o) { o.output = "y.pdf"; }).find("y.pdf"), std::string::npos);
  EXPECT_NE(message(ErrorKind::input, [](BatchedOptions& o) { o.batch = "/nowhere/graphs"; }).find("/nowhere/graphs"),
            std::string::npos);
  EXPECT_NE(message(ErrorKind::usage, [](BatchedOptions& o) { o.plan.kernel = "csr_hots"; }).find("csr_host"),
            std::string::npos);
  EXPECT_NE(message(ErrorKind::usage,
                    [](BatchedOptions& o) {
                      o.plan.kernel = "csr_hots";
                      o.stream = true;
                    })
                .find("csr_host"),
            std::string::npos);
  EXPECT_NE(message(ErrorKind::input, [](BatchedOptions& o) { o.x = "/nowhere/x.npy"; }).find("/nowhere/x.npy"),
            std::string::npos);
}

}  // namespace
}  // namespace shardmat
