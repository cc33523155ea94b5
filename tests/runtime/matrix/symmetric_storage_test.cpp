// Symmetric storage of a matrix on all ranks: products, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/memory_limits.h"
#include "runtime/matrix/own_rows.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::expect_product;
using test::multiply_once;
using test::options_for;
using test::whole_matrix;

LoadOptions half(const Case& c) {
  LoadOptions options = options_for(c);
  options.plan.storage = StoredEntries::half;
  return options;
}

void multiplies(const Case& c) {
  Context& context = context_of(c);
  if (c.backend == BackendChoice::cuda) {
    const std::string message =
        error_of(ErrorKind::usage, [&] { DistributedMatrix(open_matrix("elasticity:n=5", world()), context, half(c)); });
    EXPECT_NE(message.find("symmetric storage is for the host"), std::string::npos) << message;
    return;
  }
  for (const char* name : {"elasticity:n=6,seed=1", "poisson27:n=9", "poisson:n=20"}) {
    SCOPED_TRACE(name);
    const HostCsr a = whole_matrix(name);
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length})
      for (const Overlap overlap : {Overlap::yes, Overlap::no}) {
        LoadOptions options = half(c);
        options.sort = sort, options.overlap = overlap;
        DistributedMatrix matrix(open_matrix(name, world()), context, options);
        for (const std::int64_t columns : {1, 8, 1}) {
          const auto product = matrix.product(columns);
          expect_product(*product, a, multiply_once(*product, context.stream()));
        }
      }
  }
}
SHARDMAT_MATRIX_TEST(SymmetricStorage, Multiplies, multiplies)

TEST(SymmetricStorage, TakesLessMemory) {
  Context& context = context_of(kHost64);
  const MatrixSource source = open_matrix("elasticity:n=8", world());
  LoadOptions stored_all = options_for(kHost64), stored_half = half(kHost64);
  stored_all.plan.measure = stored_half.plan.measure = false;  // a measured choice could be a larger format
  DistributedMatrix all(source, context, stored_all), one_of_two(source, context, stored_half);
  all.product(), one_of_two.product();
  const auto bytes = [](const DistributedMatrix& matrix) {
    return world().all_reduce(matrix.device_bytes(), Reduction::sum);
  };
  const double most = world().size() == 1 ? 0.6 : 1;  // entries in columns of other ranks are stored in full
  EXPECT_LT(static_cast<double>(bytes(one_of_two)), most * static_cast<double>(bytes(all)));
}

/// This rank's rows of a matrix, cut into equal parts, with values changed by `change(row, column, value)`.
template <class Change>
DistributedMatrix take_changed(const HostCsr& a, const LoadOptions& options, const Change& change) {
  const std::int64_t begin = a.rows * world().rank() / world().size(), end = a.rows * (world().rank() + 1) / world().size();
  std::vector<std::int64_t> row_ptr, columns;
  std::vector<double> values;
  row_ptr.push_back(0);
  for (std::int64_t i = begin; i < end; ++i) {
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      if (const auto value = change(i, a.col_idx[k], a.values[k])) columns.push_back(a.col_idx[k]), values.push_back(*value);
    row_ptr.push_back(std::ssize(columns));
  }
  Context& context = context_of(kHost64);
  OwnRows rows;
  const OwnRows own{{begin, end - begin}, a.cols, row_ptr, columns, values.data()};
  return {take_rows(own, context), context, options};
}

TEST(SymmetricStorage, TakesTheMeanOfWhatDiffersByRounding) {
  Context& context = context_of(kHost64);
  const HostCsr a = whole_matrix("elasticity:n=4,seed=3");
  const auto disturbed = [](std::int64_t i, std::int64_t j, double value) -> std::optional<double> {
    if (i + 40 == j && std::abs(value) < 1e-3) return std::nullopt;  // not stored here, but there
    const std::int64_t by = (7 * i + 3 * j) % 11;
    return value * (1 + 4e-13 * static_cast<double>(by));
  };
  std::map<std::pair<std::int64_t, std::int64_t>, double> sums;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
      const double half_value = disturbed(i, a.col_idx[k], a.values[k]).value_or(0) / 2;
      sums[{i, a.col_idx[k]}] += half_value;
      sums[{a.col_idx[k], i}] += half_value;
    }
  HostCsr mean = whole_matrix("elasticity:n=4,seed=3");
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      mean.values[k] = sums.at({i, a.col_idx[k]});
  for (const Overlap overlap : {Overlap::yes, Overlap::no}) {
    LoadOptions options = half(kHost64);
    options.overlap = overlap;
    DistributedMatrix matrix = take_changed(a, options, disturbed);
    EXPECT_GT(matrix.symmetry_difference(), 4e-13);
    EXPECT_LT(matrix.symmetry_difference(), 5e-12);
    for (const std::int64_t columns : {1, 3}) {
      const auto product = matrix.product(columns);
      expect_product(*product, mean, multiply_once(*product, context.stream()));
    }
  }
  DistributedMatrix same = take_changed(a, half(kHost64), [](auto, auto, double value) { return std::optional(value); });
  EXPECT_EQ(same.symmetry_difference(), 0);
  EXPECT_TRUE(same.averaged().empty());
}

TEST(SymmetricStorage, NamesTheEntriesThatDifferMost) {
  const HostCsr a = whole_matrix("poisson27:n=6");
  using Value = std::optional<double>;
  const auto refused = [&](const auto& change) {
    return error_of(ErrorKind::input, [&] { take_changed(a, half(kHost64), change); });
  };
  std::string message = refused([](std::int64_t i, std::int64_t j, double value) {
    return Value(i == 7 && j == 150 ? 0 : i == 201 && j == 200 ? value + 1 : value);
  });
  EXPECT_NE(message.find("entry (200, 201) is "), std::string::npos) << message;
  EXPECT_NE(message.find("entry (201, 200) is "), std::string::npos) << message;
  message = refused([](std::int64_t i, std::int64_t j, double value) { return i == 1 && j == 8 ? Value() : Value(value); });
  EXPECT_NE(message.find("entry (1, 8) is not stored, but entry (8, 1) is -"), std::string::npos) << message;
  // The context stays usable.
  DistributedMatrix matrix = take_changed(a, half(kHost64), [](auto, auto, double value) { return Value(value); });
  const auto product = matrix.product();
  expect_product(*product, a, multiply_once(*product, context_of(kHost64).stream()));
}

TEST(SymmetricStorage, RefusesWhatItCannotServe) {
  Context& context = context_of(kHost64);
  const auto refused = [&](const char* name, const LoadOptions& options) {
    return error_of(ErrorKind::usage, [&] { DistributedMatrix(open_matrix(name, world()), context, options); });
  };
  EXPECT_NE(refused("random:n=20,cols=30", half(kHost64)).find("needs a square matrix; this one is 20 × 30"),
            std::string::npos);
  LoadOptions options = half(kHost64);
  options.values = Values::updatable;
  EXPECT_NE(refused("poisson:n=5", options).find("takes no new values"), std::string::npos);
  const MatrixSource source = open_matrix("poisson:n=5", world());
  LoadOptions stored_all = options_for(kHost64), stored_half = half(kHost64);
  stored_all.plan.measure = stored_half.plan.measure = false;  // a measured choice could be a larger format
  DistributedMatrix all(source, context, stored_all), one_of_two(source, context, stored_half);
  ProductOptions wanted;
  wanted.plan.emplace();
  wanted.plan->storage = StoredEntries::half;
  std::string message = error_of(ErrorKind::usage, [&] { all.product(wanted); });
  EXPECT_NE(message.find("when the matrix is made"), std::string::npos) << message;
  wanted.plan->kernel = "csr_host";
  message = error_of(ErrorKind::usage, [&] { one_of_two.product(wanted); });
  EXPECT_NE(message.find("kernel csr_host needs all entries"), std::string::npos) << message;
}

}  // namespace
}  // namespace shardmat
