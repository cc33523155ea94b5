// Plans that sum in one order (SumsInOrder): a column has the same bits in all their products, with any number of right-hand
// sides. And what is chosen if that is asked for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/ordered_format.h"
#include "kernels/choose/spmm_tuner.h"
#include "kernels/choose/stored_plans.h"
#include "kernels/choose/tuner.h"
#include "kernels/formats/packed.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/matrix_zoo.h"

namespace shardmat {
namespace {

/// Rows of very different lengths: one of 20,000 nonzeros, many of none, and columns that many rows share.
HostCsr uneven() {
  HostCsr m;
  m.rows = 40'000, m.cols = 20'000;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    const std::int64_t length = i == 1000 ? m.cols : i % 97 == 0 ? 700 : i % 5 == 0 ? 0 : 1 + (i * 7919) % 23;
    const std::int64_t step = length > 700 ? 1 : 27;
    for (std::int64_t k = 0; k < length; ++k) {
      m.col_idx.push_back((length > 700 ? 0 : i * 131 % 900) + k * step);
      m.values.push_back(test::value_of(m.values.size()));
    }
    m.row_ptr.push_back(std::ssize(m.values));
  }
  return m;
}

/// Nodes of some unknowns whose neighbours are in part at the same distance for all (shared slots), in part near (narrow
/// slots), in part anywhere (full slots).
HostCsr slots_of_all_kinds(int unknowns) {
  constexpr std::int64_t kNodes = 400;
  const std::int64_t columns = 180'000 / unknowns;  // of nodes; more than 16 bits hold
  HostCsr m;
  m.rows = unknowns * kNodes, m.cols = unknowns * columns;
  for (std::int64_t node = 0; node < kNodes; ++node) {
    std::set<std::int64_t> neighbours = {node, node + 1, node + 2};
    for (std::int64_t k = 0; k < 10; ++k) neighbours.insert(node + 10 + 20 * k + (node * 7919 + k * 31) % 17);
    for (std::int64_t k = 0; k < 7; ++k) neighbours.insert(1000 + (node * 7919 + 1) * (k + 1) * 104'729 % (columns - 1000));
    for (int row = 0; row < unknowns; ++row) {
      for (const std::int64_t neighbour : neighbours)
        for (int column = 0; column < unknowns; ++column) {
          m.col_idx.push_back(unknowns * neighbour + column);
          m.values.push_back(test::value_of(m.values.size()));
        }
      m.row_ptr.push_back(std::ssize(m.values));
    }
  }
  return m;
}

struct Scalars {
  double alpha, beta;
};
constexpr Scalars kScalars[] = {{1, 0}, {0.3, -1.7}, {-2, 0}};

/// Compares the bits of y of all products with one matrix in one layout, or of those of one kernel that has an order of its
/// own.
template <class T>
class Comparison {
 public:
  Comparison(std::shared_ptr<Storage> storage, const RowStatistics& rows, Stream& stream, std::string_view of = {})
      : storage_(std::move(storage)), rows_(rows), stream_(stream), of_(of) {
    for (std::int64_t i = 0; i < storage_->cols; ++i)
      x_.push_back(static_cast<T>(test::value_of(static_cast<std::size_t>(i))));
    for (std::int64_t i = 0; i < storage_->rows; ++i)
      y0_.push_back(static_cast<T>(test::value_of(static_cast<std::size_t>(i) + 77)));
  }

  /// Returns how many plans were compared.
  int compare_all(const std::vector<std::int64_t>& counts = {2, 3, 4, 7, 8, 16, 33, 70}) {
    for (const Kernel& kernel : kernels())
      if (kernel.backend == storage_->device.backend && kernel.format == storage_->format && wanted(kernel) &&
          kernel.supports(*storage_))
        for (const Policy& policy : kernel.policies(rows_))
          if (is_ordered(kernel, storage_->type, storage_->layout, policy, !of_.empty())) {
            const auto plan = make_plan(kernel, storage_, policy, stream_);
            compare(plan->kernel + " " + plan->tunables(), 1,
                    [&](Scalars s, const void* x, void* y) { plan->multiply(s.alpha, x, s.beta, y, stream_); });
          }
    for (const SpmmKernel& kernel : spmm_kernels())
      for (const std::int64_t count : counts) compare(kernel, {count});
    return plans_;
  }

 private:
  template <class K>
  bool wanted(const K& kernel) const {
    return of_.empty() || kernel.name == of_;
  }
  void compare(const SpmmKernel& kernel, const RightHandSides& rhs) {
    if (kernel.backend != storage_->device.backend || kernel.format != storage_->format || !wanted(kernel) ||
        !kernel.supports(*storage_, rhs))
      return;
    for (const Policy& policy : kernel.policies(*storage_, rhs)) {
      if (!is_ordered(kernel, storage_->type, storage_->layout, policy, !of_.empty())) continue;
      const auto plan = make_spmm_plan(kernel, storage_, rhs, policy, stream_);
      compare(plan->kernel + " " + plan->tunables(), rhs.count, [&](Scalars s, const void* x, void* y) {
        plan->multiply(s.alpha, x, rhs.count, s.beta, y, rhs.count, stream_);
      });
    }
  }

  template <class Product>
  void compare(const std::string& plan, std::int64_t columns, const Product& product) {
    SCOPED_TRACE(fmt::format("{} with {} columns", plan, columns));
    ++plans_;
    const auto all_columns = [&](const std::vector<T>& of) {
      std::vector<T> all;
      for (const T& entry : of) all.insert(all.end(), static_cast<std::size_t>(columns), entry);
      return all;
    };
    const std::vector<T> x = all_columns(x_);
    const Buffer device_x(storage_->device, x.size() * sizeof(T));
    copy_to_device(device_x.data(), x.data(), device_x.bytes(), stream_);
    for (std::size_t s = 0; s < std::size(kScalars); ++s) {
      std::vector<T> y = all_columns(y0_);
      const Buffer device_y(storage_->device, y.size() * sizeof(T));
      copy_to_device(device_y.data(), y.data(), device_y.bytes(), stream_);
      product(kScalars[s], device_x.data(), device_y.data());
      copy_to_host(y.data(), device_y.data(), device_y.bytes(), stream_);
      std::vector<T>& expected = expected_[s];
      if (expected.empty() && columns == 1) expected = y;
      ASSERT_EQ(expected.size(), y0_.size()) << "no plan with one right-hand side came first";
      for (std::size_t k = 0; k < y.size(); ++k)
        ASSERT_EQ(std::memcmp(&y[k], &expected[k / static_cast<std::size_t>(columns)], sizeof(T)), 0)
            << "row " << k / static_cast<std::size_t>(columns) << ", column " << k % static_cast<std::size_t>(columns)
            << ": " << y[k] << " and " << expected[k / static_cast<std::size_t>(columns)] << ", alpha " << kScalars[s].alpha;
    }
  }

  std::shared_ptr<Storage> storage_;
  const RowStatistics& rows_;
  Stream& stream_;
  std::string_view of_;  ///< a kernel; empty: all
  std::vector<T> x_, y0_, expected_[std::size(kScalars)];
  int plans_ = 0;
};

std::vector<Policy> layouts_to_compare(const Format& format, ConversionInput& input) {
  std::vector<Policy> all = {ordered_layout(format, input)};
  if (format.name == "packed" && input.stream().device().backend == Backend::cuda && input.matrix().cols >= 6)
    for (const Policy& shape : test::packed_shapes(all.front()))
      if (shape.at("lanes") == 1) all.push_back(shape);
  return all;
}

int compare_formats(const HostCsr& matrix, ValueType type, Backend backend) {
  Stream stream({backend, 0});
  ConversionInput input(matrix.view(), type, stream);
  int plans = 0;
  for (const Format& format : formats()) {
    const bool is_asked = std::any_of(kernels().begin(), kernels().end(), [&](const Kernel& kernel) {
      return kernel.backend == backend && kernel.format == format.name && kernel.sums_in_order != nullptr;
    });
    if (!is_asked || format.entries == StoredEntries::half) continue;
    for (const Policy& layout : layouts_to_compare(format, input)) {
      if (format.bytes(input, layout) > largest_reasonable_bytes(input)) continue;
      SCOPED_TRACE(fmt::format("{} {} {}", format.name, layout.text(), name(type)));
      const auto storage = store(format, input, layout);
      dispatch(type, [&]<class T>(TypeTag<T>) {
        plans += Comparison<T>(storage, input.rows(), stream).compare_all();
        for (const Kernel& kernel : kernels())
          if (kernel.backend == backend && kernel.format == format.name && kernel.own_order) {
            const int of_kernel = Comparison<T>(storage, input.rows(), stream, kernel.name).compare_all();
            EXPECT_GT(of_kernel, 2) << kernel.name;
            plans += of_kernel;
          }
      });
      if (testing::Test::HasFatalFailure()) return plans;
    }
  }
  return plans;
}

void compare_zoo(Backend backend) {
  int plans = 0;
  std::vector<test::NamedMatrix> zoo = test::matrix_zoo();
  if (backend == Backend::cuda) zoo.push_back({"uneven", uneven()});
  for (const test::NamedMatrix& one : zoo)
    for (const ValueType type : {ValueType::f64, ValueType::f32}) {
      SCOPED_TRACE(one.name);
      plans += compare_formats(one.matrix, type, backend);
      if (testing::Test::HasFatalFailure()) return;
    }
  EXPECT_GT(plans, 100);
}

TEST(SameBits, OfColumnsInAllOrderedPlans) { compare_zoo(Backend::host); }
TEST(GpuSameBits, OfColumnsInAllOrderedPlans) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  compare_zoo(Backend::cuda);
}

TEST(GpuSameBits, OfSlotsOfAllKinds) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  Stream stream({Backend::cuda, 0});
  for (const int unknowns : {1, 3}) {
    SCOPED_TRACE(fmt::format("{} unknowns a node", unknowns));
    const HostCsr matrix = slots_of_all_kinds(unknowns);
    for (const ValueType type : {ValueType::f64, ValueType::f32}) {
      ConversionInput input(matrix.view(), type, stream);
      const auto storage =
          store(find_format("packed"), input, {{"block", unknowns}, {"lanes", 1}, {"shift", 0}, {"window", 1024}});
      const auto& packed = static_cast<const PackedStorage&>(*storage);
      std::vector<PackedSlice> slices(static_cast<std::size_t>(packed.slices));
      copy_to_host(slices.data(), packed.slice.data(), slices.size() * sizeof(PackedSlice), stream);
      EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [](const PackedSlice& slice) {
        return slice.slots[kSharedSlot] > 0 && slice.slots[kNarrowSlot] > 0 && slice.slots[kFullSlot] > 0;
      }));
      dispatch(type, [&]<class T>(TypeTag<T>) {
        EXPECT_GT((Comparison<T>(storage, input.rows(), stream).compare_all({2, 8})), 6);
      });
    }
  }
}

/// One format and layout for any number of right-hand sides, and ordered plans.
void choose(Backend backend) {
  Stream stream({backend, 0});
  std::vector<test::NamedMatrix> zoo = test::matrix_zoo();
  zoo.push_back({"uneven", uneven()});
  for (const test::NamedMatrix& one : zoo) {
    if (one.matrix.nnz() == 0) continue;
    SCOPED_TRACE(one.name);
    PlanRequest request;
    request.same_bits = true;
    request.products = 1;
    const ChosenPlan single = choose_plan(one.matrix.view(), ValueType::f64, request, stream);
    const Storage& storage = single.plan->storage();
    EXPECT_TRUE(
        is_ordered(find_kernel(single.plan->kernel, backend), storage.type, storage.layout, single.plan->policy, false));
    ConversionInput input(one.matrix.view(), ValueType::f64, stream);
    SpmmTuner tuner(input);
    SpmmRequest many;
    many.same_bits = true;
    many.products = 1;
    const ChosenSpmmPlan eight = tuner.choose({8}, many);
    EXPECT_EQ(eight.plan->storage().format, storage.format);
    EXPECT_EQ(eight.plan->storage().layout, storage.layout);
    EXPECT_TRUE(
        is_ordered(find_spmm_kernel(eight.plan->kernel, backend), storage.type, storage.layout, eight.plan->policy, false));
    const std::vector<std::shared_ptr<Storage>> stored = {single.plan->shared_storage()};
    EXPECT_TRUE(choose_stored_spmm_plan(stored, 4, many, {}, stream).has_value());
    EXPECT_TRUE(choose_stored_plan(stored, input.rows(), request, stream).has_value());
  }
}

TEST(SameBits, AreOfOneFormatForAnyNumberOfColumns) { choose(Backend::host); }
TEST(GpuSameBits, AreOfOneFormatForAnyNumberOfColumns) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  choose(Backend::cuda);
}

TEST(SameBits, AreRefusedByOtherKernels) {
  Stream stream({Backend::host, 0});
  const HostCsr matrix = uneven();
  PlanRequest request;
  request.same_bits = true;
  request.kernel = "crs_paper_host";
  try {
    choose_plan(matrix.view(), ValueType::f64, request, stream);
    FAIL() << "crs_paper_host was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.setting(), "same_bits");
    EXPECT_NE(std::string(error.what()).find("crs_paper_host"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardmat
