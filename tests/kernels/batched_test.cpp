// One suite over every kernel for batches: each policy, type and a range of column counts on batches of every mixture,
// against a plain f64 loop. Outputs are poisoned with NaN, and what lies between their rows must not change.
#include "kernels/batched/batched_spmm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/batched_tuner.h"
#include "kernels/batched/check.h"
#include "kernels/batched/transpose.h"
#include "kernels/formats/upload.h"
#include "tests/support/batch_zoo.h"
#include "tests/support/epilogue_check.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

using test::add_matrix;
using test::batch_zoo;
using test::Dense;
using test::NamedBatch;

/// `y` is `before` with act(alpha·A·x + beta·before + bias) in its entries and all else as it was.
template <class A, class T>
void expect_right(const HostBatch& batch, const Epilogue& e, const std::vector<T>& bias, const Dense<A>& x,
                  const Dense<T>& before, const std::vector<T>& y, ValueType type) {
  test::EpilogueCheck<T> check(e, bias, before, y, type);
  const BatchView view = batch.view();
  std::vector<double> sum, absolute;
  for (std::int64_t i = 0; i < view.count(); ++i)
    for (std::int64_t row = batch.first_row[static_cast<std::size_t>(i)];
         row < batch.first_row[static_cast<std::size_t>(i) + 1]; ++row) {
      sum.assign(static_cast<std::size_t>(x.columns), 0);
      absolute = sum;
      const auto begin = static_cast<std::size_t>(batch.row_ptr[static_cast<std::size_t>(row)]),
                 end = static_cast<std::size_t>(batch.row_ptr[static_cast<std::size_t>(row) + 1]);
      for (std::size_t k = begin; k < end; ++k) {
        const std::int64_t from = batch.first_col[static_cast<std::size_t>(i)] + batch.col_idx[k];
        for (std::size_t j = 0; j < sum.size(); ++j) {
          const double term =
              static_cast<double>(static_cast<A>(batch.values[k])) * x.at(from, static_cast<std::int64_t>(j));
          sum[j] += term, absolute[j] += std::abs(term);
        }
      }
      for (std::size_t j = 0; j < sum.size(); ++j)
        ASSERT_TRUE(
            check.right(row, static_cast<std::int64_t>(j), sum[j], absolute[j], static_cast<double>(end - begin) + 3))
            << "matrix " << i;
    }
  check.expect_rest_untouched();
}

template <class A, class T>
void check_plan(const BatchedPlan& plan, const HostBatch& batch, std::int64_t skip, Stream& stream) {
  const DeviceBatch& stored = plan.batch();
  const std::int64_t columns = plan.columns();
  const Dense<A> x(stored.at.cols(), columns, skip, 1000);
  const test::Fenced<A> device_x(x.entries, stream);
  std::vector<T> bias(static_cast<std::size_t>(columns));
  for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<T>(test::value_of(9000 + j));
  const test::Fenced<T> device_bias(bias, stream);
  for (const Epilogue& e : {Epilogue{}, Epilogue{-0.5, 0, nullptr, true}, Epilogue{0.25, -2, device_bias.data(), false},
                            Epilogue{1, 1, device_bias.data(), true}}) {
    Dense<T> before(stored.at.rows(), columns, skip, 5000);
    for (std::int64_t i = 0; i < stored.at.rows() && e.beta == 0; ++i)
      for (std::int64_t j = 0; j < columns; ++j) before.at(i, j) = std::numeric_limits<T>::quiet_NaN();
    const test::Fenced<T> device_y(before.entries, stream), again(before.entries, stream);
    plan.multiply(device_x.data(), x.leading, device_y.data(), before.leading, e, stream);
    const std::vector<T> y = device_y.read(stream);
    expect_right(batch, e, e.bias == nullptr ? std::vector<T>{} : bias, x, before, y, stored.type);
    if (!plan.reproducible() || y.empty()) continue;
    plan.multiply(device_x.data(), x.leading, again.data(), before.leading, e, stream);
    EXPECT_EQ(std::memcmp(y.data(), again.read(stream).data(), y.size() * sizeof(T)), 0) << "not bit-identical";
  }
  EXPECT_EQ(device_x.read(stream), x.entries) << "X was changed";
}

std::shared_ptr<const DeviceBatch> stored(const HostBatch& batch, BatchFormat format, ValueType type, Stream& stream) {
  return format == BatchFormat::csr ? upload(batch.view(), type, stream)
                                    : upload(to_coo(batch.view(), 3).view(), type, stream);
}

constexpr std::int64_t kAllColumns[] = {1, 2, 3, 8, 16, 17, 31, 32, 33, 64, 200, 512, 1024};

void conform(const BatchedKernel& kernel, std::span<const std::int64_t> counts = kAllColumns) {
  Stream stream(Device{kernel.backend, 0});
  std::size_t plans = 0;
  for (const NamedBatch& zoo : batch_zoo())
    for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::f16, ValueType::bf16}) {
      const auto batch = stored(zoo.batch, kernel.format, type, stream);
      for (const std::int64_t columns : counts) {
        if (columns > zoo.most_columns || (type != ValueType::f32 && columns > 64)) continue;
        for (const Policy& policy : kernel.policies(*batch, columns)) {
          const auto plan = make_batched_plan(kernel, batch, columns, policy);
          plan->place(stream);
          for (const std::int64_t skip : {0, 3, 8}) {
            if (skip != 0 && columns > 64) continue;
            SCOPED_TRACE(fmt::format("{} {} {} columns {} skip {}", zoo.name, name(type), columns, policy.text(), skip));
            dispatch_operands(type, [&](auto of_a, auto of_sum) {
              check_plan<typename decltype(of_a)::type, typename decltype(of_sum)::type>(*plan, zoo.batch, skip, stream);
            });
            if (testing::Test::HasFatalFailure()) return;
          }
          ++plans;
        }
      }
    }
  EXPECT_GT(plans, 0) << "took no batch of the zoo";
}

std::vector<std::string> names(Backend backend) {
  std::vector<std::string> all;
  for (const BatchedKernel& kernel : batched_kernels())
    if (kernel.backend == backend) all.emplace_back(kernel.name);
  return all;
}
std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class HostBatched : public testing::TestWithParam<std::string> {};
TEST_P(HostBatched, Conforms) { conform(find_batched_kernel(GetParam(), Backend::host)); }
INSTANTIATE_TEST_SUITE_P(, HostBatched, testing::ValuesIn(names(Backend::host)), name_of);

/// With the lower instruction sets, and with numbers of columns that have groups of every width.
class HostBatchedOfLowerIsa : public testing::TestWithParam<std::string> {};
TEST_P(HostBatchedOfLowerIsa, Conforms) {
  for (const Isa isa : test::instruction_sets()) {
    if (isa == instruction_set()) continue;
    SCOPED_TRACE(std::string(name(isa)));
    const IsaScope scope(isa);
    conform(find_batched_kernel(GetParam(), Backend::host), std::array<std::int64_t, 3>{1, 31, 200});
  }
}
INSTANTIATE_TEST_SUITE_P(, HostBatchedOfLowerIsa, testing::ValuesIn(names(Backend::host)), name_of);

/// Y of a product with the first `columns` columns of X, row-major without gaps.
template <class A, class T>
std::vector<T> product_of(const BatchedKernel& kernel, const std::shared_ptr<const DeviceBatch>& batch, std::int64_t columns,
                          const Dense<A>& x, const Epilogue& epilogue, const Dense<T>& before, Stream& stream) {
  const auto plan = make_batched_plan(kernel, batch, columns, {});
  plan->place(stream);
  std::vector<T> y;
  for (std::int64_t i = 0; i < batch->at.rows(); ++i)
    y.insert(y.end(), &before.entries[static_cast<std::size_t>(i * before.leading)],
             &before.entries[static_cast<std::size_t>(i * before.leading + columns)]);
  plan->multiply(x.entries.data(), x.leading, y.data(), columns, epilogue, stream);
  return y;
}

/// A column has the same bits for all numbers of columns and threads.
template <class A, class T>
void expect_same_bits(const BatchedKernel& kernel, const NamedBatch& zoo, ValueType type, Stream& stream) {
  constexpr std::int64_t kMost = 150;
  const auto batch = stored(zoo.batch, kernel.format, type, stream);
  const Dense<A> x(batch->at.cols(), kMost, 0, 1000);
  const Dense<T> before(batch->at.rows(), kMost, 0, 5000);
  std::vector<T> bias(kMost);
  for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = static_cast<T>(test::value_of(9000 + j));
  for (const Epilogue& epilogue : {Epilogue{}, Epilogue{0.3, -0.7, bias.data(), true}}) {
    const std::vector<T> all = product_of(kernel, batch, kMost, x, epilogue, before, stream);
    for (const int threads : {1, 3})
      for (const std::int64_t columns : {1, 2, 7, 16, 33, 64, 127}) {
        SCOPED_TRACE(fmt::format("{} threads, {} columns", threads, columns));
        const ThreadCount scope(threads);
        const std::vector<T> y = product_of(kernel, batch, columns, x, epilogue, before, stream);
        for (std::size_t i = 0; i < static_cast<std::size_t>(batch->at.rows()); ++i)
          ASSERT_EQ(std::memcmp(&y[i * static_cast<std::size_t>(columns)], &all[i * kMost],
                                static_cast<std::size_t>(columns) * sizeof(T)),
                    0)
              << "row " << i;
      }
  }
}
TEST_P(HostBatched, ColumnsHaveTheSameBitsForAllWidthsAndThreads) {
  Stream stream({Backend::host, 0});
  for (const Isa isa : test::instruction_sets())
    for (const NamedBatch& zoo : batch_zoo())
      for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::f16, ValueType::bf16}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(isa), zoo.name, name(type)));
        const IsaScope scope(isa);
        dispatch_operands(type, [&](auto of_a, auto of_sum) {
          expect_same_bits<typename decltype(of_a)::type, typename decltype(of_sum)::type>(
              find_batched_kernel(GetParam(), Backend::host), zoo, type, stream);
        });
        if (HasFatalFailure()) return;
      }
}

class GpuBatched : public testing::TestWithParam<std::string> {};
TEST_P(GpuBatched, Conforms) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  conform(find_batched_kernel(GetParam(), Backend::cuda));
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuBatched);
INSTANTIATE_TEST_SUITE_P(, GpuBatched, testing::ValuesIn(names(Backend::cuda)), name_of);

HostBatch many_matrices() {
  std::mt19937 random(11);
  HostBatch batch;
  for (int i = 0; i < 100'000; ++i) add_matrix(batch, i % 7, 1 + i % 5, 3, random);
  return batch;
}

/// Every kernel of a backend that the automatic choice may take, on 100,000 matrices.
void multiply_many(Backend backend) {
  Stream stream(Device{backend, 0});
  const HostBatch batch = many_matrices();
  for (const BatchedKernel& kernel : batched_kernels()) {
    if (kernel.backend != backend || !kernel.automatic) continue;
    SCOPED_TRACE(std::string(kernel.name));
    const auto device = stored(batch, kernel.format, ValueType::f32, stream);
    const auto plan = make_batched_plan(kernel, device, 8, kernel.policies(*device, 8).front());
    plan->place(stream);
    check_plan<float, float>(*plan, batch, 0, stream);
  }
}
TEST(Batched, ManyMatrices) { multiply_many(Backend::host); }
TEST(GpuBatches, ManyMatrices) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  multiply_many(Backend::cuda);
}

/// Products whose X is the Y before, kernels launched while the one before is at work, lists put anew between them: the same
/// bits as with a wait behind each.
TEST(GpuBatches, ChainsOfProducts) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  constexpr int kProducts = 24;
  constexpr std::int64_t kColumns = 64;
  Stream stream(Device{Backend::cuda, 0});
  std::mt19937 random(5);
  for (const int count : {3, 40, 150, 1000}) {  // within one wave of blocks, several; descriptors of every kind
    HostBatch batch;
    for (int i = 0; i < count; ++i) add_matrix(batch, 20 + i % 30, 20 + i % 30, 4, random);
    const auto device = upload(batch.view(), ValueType::f64, stream);
    const auto entries = static_cast<std::size_t>(device->at.rows() * kColumns);
    std::vector<double> start(entries);
    for (std::size_t i = 0; i < entries; ++i) start[i] = test::value_of(i);
    for (const char* name : {"rows", "staged"}) {
      const BatchedKernel& kernel = find_batched_kernel(name, Backend::cuda);
      const auto plan = make_batched_plan(kernel, device, kColumns, kernel.policies(*device, kColumns).front());
      const Buffer work(stream.device(), plan->work_bytes()), a(stream.device(), entries * 8),
          b(stream.device(), entries * 8);
      HostBuffer staging;
      staging.reserve(plan->staging_bytes() + 1, stream.device(), true);
      enum class Way { waiting, streaming, placing, graph };
      const auto run = [&](Way way) {
        copy_to_device(a.data(), start.data(), a.bytes(), stream);
        plan->place(work.data(), staging.data(), stream);
        const auto products = [&] {
          for (int i = 0; i < kProducts; ++i) {
            plan->multiply(i % 2 == 0 ? a.data() : b.data(), kColumns, i % 2 == 0 ? b.data() : a.data(), kColumns, {},
                           stream);
            if (way == Way::waiting) stream.synchronize();
            if (way == Way::placing) plan->place(work.data(), staging.data(), stream);
          }
        };
        if (way == Way::graph) {
          Graph graph(stream, products);
          graph.launch(stream);
          stream.synchronize();
        } else {
          products();
        }
        std::vector<double> result(entries);
        copy_to_host(result.data(), a.data(), a.bytes(), stream);
        return result;
      };
      const std::vector<double> expected = run(Way::waiting);
      for (int repetition = 0; repetition < 20; ++repetition)
        for (const Way way : {Way::streaming, Way::placing, Way::graph})
          ASSERT_EQ(std::memcmp(run(way).data(), expected.data(), a.bytes()), 0)
              << name << " " << count << " way " << static_cast<int>(way) << " repetition " << repetition;
    }
  }
}

/// Batches whose descriptors have the lengths at which they move into larger arguments of a kernel, and into memory. Each
/// has the first matrices of the longest batch, and their bits.
TEST(GpuBatches, DescriptorsInArgumentsAndInMemory) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  constexpr std::int64_t kColumns = 8, kMost = 1000;
  Stream stream(Device{Backend::cuda, 0});
  enum class Shapes { square, mixed, one };
  for (const Shapes shapes : {Shapes::square, Shapes::mixed, Shapes::one}) {
    std::mt19937 random(13);
    HostBatch all;
    for (int i = 0; i < kMost; ++i)
      if (shapes == Shapes::one) add_matrix(all, 3, 5, 2, random);
      else add_matrix(all, i % 5, shapes == Shapes::square ? i % 5 : 1 + i % 3, 3, random);
    const Dense<float> x(all.view().cols(), kColumns, 0, 1000);
    const test::Fenced<float> device_x(x.entries, stream);
    for (const auto& [name, policy] : {std::pair{"rows", "block_size=128,entries=4"},
                                       {"staged", "block_size=64,columns=8,rows=1"},
                                       {"staged", "block_size=64,columns=8,rows=16"}}) {
      const BatchedKernel& kernel = find_batched_kernel(name, Backend::cuda);
      std::vector<float> expected;
      const auto plan_of = [&](std::int64_t count) {
        HostBatch batch;
        batch.append(all.view().slice(0, count));
        const auto device = upload(batch.view(), ValueType::f32, stream);
        return std::pair(std::move(batch), make_batched_plan(kernel, device, kColumns,
                                                             kernel.policies(*device, kColumns).front().with(policy)));
      };
      const auto check = [&](std::int64_t count) {
        SCOPED_TRACE(fmt::format("{} {} {} matrices", name, policy, count));
        const auto [batch, plan] = plan_of(count);
        plan->place(stream);
        check_plan<float, float>(*plan, batch, 0, stream);
        const Buffer y(stream.device(), static_cast<std::size_t>(batch.view().rows() * kColumns) * sizeof(float));
        plan->multiply(device_x.data(), kColumns, y.data(), kColumns, {}, stream);
        const auto found = download<float>(y, stream);
        if (count == kMost) expected = found;
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), y.bytes()), 0);
      };
      check(kMost);
      check(2);
      for (const std::size_t limit : {batched::kFewWordsOfLaunch, batched::kWordsOfLaunch}) {
        std::int64_t fits = 2, beyond = kMost + 1;
        while (beyond - fits > 1) {
          const std::int64_t middle = (fits + beyond) / 2;
          (plan_of(middle).second->descriptor_bytes() <= limit * sizeof(std::int32_t) ? fits : beyond) = middle;
        }
        check(fits);
        EXPECT_EQ(plan_of(fits).second->work_bytes(), 0);
        if (beyond <= kMost) {
          check(beyond);
          EXPECT_EQ(plan_of(beyond).second->work_bytes() > 0, limit == batched::kWordsOfLaunch);
        }
        EXPECT_EQ(beyond > kMost, shapes == Shapes::one && std::string(name) == "rows");
      }
    }
  }
}

/// Few rows, so many columns that their X fits no shared memory, and its bytes no 32 bits.
TEST(GpuBatches, VeryWideMatrices) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  HostBatch batch;
  std::mt19937 random(5);
  add_matrix(batch, 8, 33'554'432, 5, random);
  const auto device = upload(batch.view(), ValueType::f32, stream);
  EXPECT_TRUE(find_batched_kernel("staged", Backend::cuda).policies(*device, 32).empty());
  const BatchedKernel& kernel = find_batched_kernel("rows", Backend::cuda);
  const auto plan = make_batched_plan(kernel, device, 32, kernel.policies(*device, 32).front());
  plan->place(stream);
  const Buffer x(stream.device(), std::size_t{33'554'432} * 32 * 4), y(stream.device(), 8 * 32 * 4);
  fill_bytes(x.data(), 0, x.bytes(), stream);
  plan->multiply(x.data(), 32, y.data(), 32, {}, stream);
  EXPECT_EQ(download<float>(y, stream), std::vector<float>(8 * 32));
}

/// Arrays as a framework may have them: not where an allocation begins.
TEST(GpuBatches, ArraysAtAnyPlace) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream(Device{Backend::cuda, 0});
  const HostBatch batch = batch_zoo().front().batch;
  const auto stored_batch = upload(batch.view(), ValueType::f32, stream);
  const auto moved = [&](const void* from, std::int64_t count, std::size_t by) {
    Buffer to(stream.device(), static_cast<std::size_t>(count) * 4 + by);
    copy_on_device(to.as<char>() + by, from, static_cast<std::size_t>(count) * 4, stream);
    return to;
  };
  for (const std::size_t by : {4, 8, 16}) {
    const Buffer row_ptr = moved(stored_batch->row_ptr, batch.view().rows() + 1, by),
                 col_idx = moved(stored_batch->col_idx, batch.view().nnz(), by),
                 values = moved(stored_batch->values, batch.view().nnz(), by);
    auto elsewhere = std::make_shared<DeviceBatch>(*stored_batch);
    elsewhere->row_ptr = row_ptr.as<std::int32_t>() + by / 4;
    elsewhere->col_idx = col_idx.as<std::int32_t>() + by / 4;
    elsewhere->values = values.as<float>() + by / 4;
    for (const BatchedKernel& kernel : batched_kernels()) {
      if (kernel.backend != Backend::cuda || kernel.format != BatchFormat::csr) continue;
      SCOPED_TRACE(fmt::format("{} {}", kernel.name, by));
      const auto plan = make_batched_plan(kernel, elsewhere, 64, kernel.policies(*elsewhere, 64).front());
      plan->place(stream);
      check_plan<float, float>(*plan, batch, 0, stream);
    }
  }
}

TEST(Batched, CoordinatesAndBack) {
  for (const NamedBatch& zoo : batch_zoo()) {
    SCOPED_TRACE(zoo.name);
    const HostBatch again = to_csr(to_coo(zoo.batch.view()).view());
    EXPECT_EQ(again.row_ptr, zoo.batch.row_ptr);
    EXPECT_EQ(again.col_idx, zoo.batch.col_idx);
    EXPECT_EQ(again.values, zoo.batch.values);
  }
}

TEST(Batched, TransposesMatrixByMatrix) {
  const HostBatch batch = batch_zoo().front().batch, t = transposed(batch.view());
  ASSERT_NO_THROW(validate(t.view()));
  EXPECT_EQ(t.first_row, batch.first_col);
  const auto dense = [](const BatchView& b, std::int64_t i, bool flip) {
    std::vector<double> all(static_cast<std::size_t>(b.rows_of(i) * b.cols_of(i)));
    for (std::int64_t row = 0; row < b.rows_of(i); ++row) {
      const auto at = static_cast<std::size_t>(b.first_row[static_cast<std::size_t>(i)] + row);
      for (auto k = static_cast<std::size_t>(b.row_ptr[at]); k < static_cast<std::size_t>(b.row_ptr[at + 1]); ++k) {
        const std::int64_t col = b.col_idx[k];
        all[static_cast<std::size_t>(flip ? col * b.rows_of(i) + row : row * b.cols_of(i) + col)] += b.values[k];
      }
    }
    return all;
  };
  for (std::int64_t i = 0; i < batch.view().count(); ++i)
    EXPECT_EQ(dense(t.view(), i, true), dense(batch.view(), i, false)) << i;
}

/// The transposes made on a device are those made on the host.
void transpose_on(Backend backend) {
  Stream stream(Device{backend, 0});
  for (const NamedBatch& zoo : batch_zoo())
    for (const ValueType type : {ValueType::f64, ValueType::f16}) {
      SCOPED_TRACE(fmt::format("{} {}", zoo.name, name(type)));
      const auto made = transpose(*upload(zoo.batch.view(), type, stream), stream);
      const auto expected = upload(transposed(zoo.batch.view()).view(), type, stream);
      EXPECT_EQ(made->at.first_row, expected->at.first_row);
      EXPECT_EQ(made->at.most_rows, expected->at.most_rows);
      const auto equal = [&](const void* a, const void* b, std::int64_t count, std::size_t size) {
        std::vector<char> one(static_cast<std::size_t>(count) * size), other(one.size());
        if (one.empty()) return true;
        copy_to_host(one.data(), a, one.size(), stream);
        copy_to_host(other.data(), b, other.size(), stream);
        return one == other;
      };
      EXPECT_TRUE(equal(made->row_ptr, expected->row_ptr, made->at.rows() + 1, 4));
      EXPECT_TRUE(equal(made->col_idx, expected->col_idx, made->at.nnz(), 4));
      EXPECT_TRUE(equal(made->values, expected->values, made->at.nnz(), size_of(type)));
    }
}
TEST(Batched, TransposesOnTheHost) { transpose_on(Backend::host); }
TEST(GpuBatches, Transposes) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  transpose_on(Backend::cuda);
}

/// What require_valid() says of a batch with one index changed where it lies.
std::string fault_on(Backend backend, BatchFormat format, std::int64_t changed, std::int32_t to, bool of_rows = false) {
  Stream stream(Device{backend, 0});
  const HostBatch batch = batch_zoo().front().batch;
  const auto device = std::const_pointer_cast<DeviceBatch>(stored(batch, format, ValueType::f32, stream));
  const std::int32_t* array = !of_rows ? device->col_idx : format == BatchFormat::csr ? device->row_ptr : device->row_idx;
  if (changed >= 0) copy_to_device(const_cast<std::int32_t*>(array) + changed, &to, sizeof to, stream);
  try {
    require_valid(*device, stream);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return "";
}
void find_faults_on(Backend backend) {
  const HostBatch batch = batch_zoo().front().batch;  // its first matrix is 50 × 50
  const auto first = static_cast<std::int32_t>(batch.view().nnz_of(0));
  for (const BatchFormat format : {BatchFormat::csr, BatchFormat::coo}) {
    EXPECT_EQ(fault_on(backend, format, -1, 0), "");
    EXPECT_NE(fault_on(backend, format, 7, 50).find("matrix 0, entry 7: "), std::string::npos);
    EXPECT_NE(fault_on(backend, format, 7, 50).find("column 50 is outside its 50 × 50"), std::string::npos);
    EXPECT_NE(fault_on(backend, format, 3, -2).find("matrix 0, entry 3: "), std::string::npos);
  }
  EXPECT_NE(fault_on(backend, BatchFormat::coo, 5, 50, true).find("matrix 0, entry 5: row 50, column "), std::string::npos);
  EXPECT_NE(fault_on(backend, BatchFormat::csr, 50, first + 1, true).find("matrix 0, row 49: its row pointers go from "),
            std::string::npos);
  EXPECT_NE(fault_on(backend, BatchFormat::csr, 20, 1 << 30, true).find("matrix 0, row 19: "), std::string::npos);
}
TEST(Batched, FindsFaultsInPlace) { find_faults_on(Backend::host); }
TEST(GpuBatches, FindsFaultsInPlace) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  find_faults_on(Backend::cuda);
}

void choose_on(Backend backend) {
  Stream stream(Device{backend, 0});
  const HostBatch batch = batch_zoo().front().batch;
  for (const BatchFormat format : {BatchFormat::csr, BatchFormat::coo}) {
    const auto device = stored(batch, format, ValueType::f32, stream);
    for (const bool measure : {false, true}) {
      BatchedRequest request;
      request.measure = measure;
      const ChosenBatchedPlan chosen = choose_batched_plan(device, 64, request, stream);
      EXPECT_TRUE(find_batched_kernel(chosen.plan->kernel, backend).automatic);
      EXPECT_EQ(chosen.measurements.empty(), backend == Backend::host || !measure);
      check_plan<float, float>(*chosen.plan, batch, 0, stream);
    }
    BatchedRequest wrong;
    wrong.kernel = "rowz";
    EXPECT_THROW(choose_batched_plan(device, 64, wrong, stream), Error);
    wrong.kernel = "auto";
    wrong.policy = "block_size=64";
    EXPECT_THROW(choose_batched_plan(device, 64, wrong, stream), Error);
  }
}
TEST(Batched, Chooses) { choose_on(Backend::host); }
TEST(GpuBatches, Chooses) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  choose_on(Backend::cuda);
}

TEST(Batched, SlicesAreBatches) {
  const HostBatch batch = batch_zoo().front().batch;
  const BatchView whole = batch.view();
  HostBatch joined;
  for (std::int64_t i = 0; i < whole.count(); i += 5) {
    const BatchView part = whole.slice(i, std::min(i + 5, whole.count()));
    ASSERT_NO_THROW(validate(part));
    joined.append(part);
  }
  EXPECT_EQ(joined.first_row, batch.first_row);
  EXPECT_EQ(joined.first_col, batch.first_col);
  EXPECT_EQ(joined.row_ptr, batch.row_ptr);
  EXPECT_EQ(joined.values, batch.values);
}

std::string fault(const HostBatch& batch) {
  try {
    validate(batch.view(), "graphs.h5", 100);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return "";
}

TEST(Batched, FaultsNameMatrixAndEntry) {
  HostBatch good;
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) add_matrix(good, 0, 2, 0, random);
  HostBatch one;
  one.first_row = {0, 3}, one.first_col = {0, 4}, one.row_ptr = {0, 2, 2, 5};
  one.col_idx = {0, 3, 1, 1, 2}, one.values = {1, 2, 3, 4, 5};
  good.append(one.view());
  EXPECT_EQ(fault(good), "");
  HostBatch bad = good;
  bad.col_idx[3] = 4;
  EXPECT_EQ(fault(bad), "graphs.h5: matrix 104, entry 3 (row 2): column 4 is out of range [0, 4)");
  bad.col_idx[1] = -1;
  EXPECT_EQ(fault(bad), "graphs.h5: matrix 104, entry 1 (row 0): column -1 is out of range [0, 4)");
  bad = good;
  bad.values[4] = std::numeric_limits<double>::infinity();
  EXPECT_NE(fault(bad).find("matrix 104, entry 4 (row 2): the value"), std::string::npos);
  bad = good;
  bad.row_ptr[2] = 1;
  EXPECT_NE(fault(bad).find("row pointers fall from 2 to 1"), std::string::npos);
  bad = good;
  bad.first_col[2] = 1;
  EXPECT_NE(fault(bad).find("matrix 101: its first columns fall"), std::string::npos);
  HostCooBatch coo = to_coo(good.view());
  coo.row_idx[2] = 3;
  EXPECT_THROW(validate(coo.view()), Error);
}

TEST(Batched, RefusesWhatDoesNotFit) {
  Stream stream(Device{});
  HostBatch batch;
  std::mt19937 random(3);
  add_matrix(batch, 4, 4, 2, random);
  const auto csr = upload(batch.view(), ValueType::f32, stream);
  const BatchedKernel& coo = find_batched_kernel("coo_host", Backend::host);
  EXPECT_THROW(make_batched_plan(coo, csr, 4, {}), Error);
  EXPECT_THROW(find_batched_kernel("csr_hosts", Backend::host), Error);
  const BatchedKernel& kernel = find_batched_kernel("csr_host", Backend::host);
  EXPECT_THROW(make_batched_plan(kernel, csr, 0, {}), Error);
  const auto plan = make_batched_plan(kernel, csr, 4, {});
  plan->place(stream);
  std::vector<float> x(16), y(16);
  EXPECT_THROW(plan->multiply(x.data(), 3, y.data(), 4, {}, stream), Error);
  std::vector<std::int64_t> huge{0, std::int64_t{1} << 31};
  EXPECT_THROW(BatchOffsets(huge, huge, huge), Error);
}

TEST(PackedBatches, HaveTheBytesThatAreForetold) {
  for (const ValueType type : {ValueType::f64, ValueType::f32})
    for (const NamedBatch& named : batch_zoo()) {
      const BatchView batch = named.batch.view();
      EXPECT_EQ(PackedBatch(batch, type).bytes(), csr_block_bytes(batch.rows(), batch.nnz(), type)) << named.name;
    }
}

}  // namespace
}  // namespace shardmat
