// New values through a map, against a storage converted from them: every format in every layout and type, the whole zoo, bit
// for bit in the value arrays (padding included) and in the products of plans that were made before.
#include "kernels/choose/value_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/choose/registry.h"
#include "kernels/choose/spmm_registry.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/upload.h"
#include "tests/support/layout_zoo.h"
#include "tests/support/matrix_zoo.h"
#include "tests/support/plan_check.h"

namespace shardmat {
namespace {

using Positions = std::vector<std::int64_t>;
using Bytes = std::vector<char>;

/// Values with zeros among them, and of magnitudes that round in every narrower type.
HostCsr with_values(HostCsr m, std::size_t seed) {
  for (std::size_t k = 0; k < m.values.size(); ++k)
    m.values[k] = (k + seed) % 41 == 0 ? 0.0 : test::value_of(seed + k) * std::ldexp(1.0, static_cast<int>(k % 7) - 3);
  return m;
}

/// As f32 holds them.
HostCsr with_values_of_f32(HostCsr m, std::size_t seed) {
  m = with_values(std::move(m), seed);
  for (double& value : m.values) value = static_cast<double>(static_cast<float>(value));
  return m;
}

/// Nonzero k has its value at entry (factor·k + 5) mod (nnz + 3), each another one: some entries belong to no nonzero.
Positions shuffled(std::int64_t nnz) {
  const std::int64_t entries = nnz + 3;
  std::int64_t factor = entries / 3 * 2 + 1;
  while (std::gcd(factor, entries) != 1) ++factor;
  Positions positions(static_cast<std::size_t>(nnz));
  for (std::int64_t k = 0; k < nnz; ++k) positions[static_cast<std::size_t>(k)] = (factor * k + 5) % entries;
  return positions;
}

/// The matrix's values as entries of type T on the device, at their positions, NaN elsewhere.
template <class T>
Buffer entries_of(const HostCsr& m, const Positions& positions, std::int64_t count, Stream& stream) {
  std::vector<T> entries(static_cast<std::size_t>(count), std::numeric_limits<T>::quiet_NaN());
  for (std::size_t k = 0; k < m.values.size(); ++k)
    entries[positions.empty() ? k : static_cast<std::size_t>(positions[k])] = static_cast<T>(m.values[k]);
  return upload(entries, stream);
}

void update(const ValueMap& map, Storage& storage, const HostCsr& m, ValueType type, const Positions& positions,
            Stream& stream) {
  const std::int64_t count = positions.empty() ? m.nnz() : m.nnz() + 3;
  dispatch(type, [&](auto tag) {
    const Buffer entries = entries_of<typename decltype(tag)::type>(m, positions, count, stream);
    map.update(storage, entries.data(), count, type, stream);
    stream.synchronize();
  });
}

/// What the value arrays hold, one behind the other.
Bytes values_of(const Storage& storage, Stream& stream) {
  Bytes all;
  for (const Buffer* array : storage.value_arrays()) {
    const Bytes one = download<char>(*array, stream);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::int64_t places_of(const Storage& storage) {
  std::int64_t bytes = 0;
  for (const Buffer* array : storage.value_arrays()) bytes += static_cast<std::int64_t>(array->bytes());
  return bytes / static_cast<std::int64_t>(size_of(storage.type));
}

/// Plans of every kernel that takes a storage, for one and for three right-hand sides, and what they multiply to.
class Products {
 public:
  Products(const std::shared_ptr<Storage>& storage, const RowStatistics& rows, Stream& stream)
      : storage_(storage), stream_(stream) {
    for (const Kernel& kernel : kernels())
      if (kernel.backend == storage->device.backend && kernel.format == storage->format && !is_half(storage->type) &&
          kernel.supports(*storage))
        plans_.push_back(make_plan(kernel, storage, kernel.policies(rows).front(), stream));
    for (const SpmmKernel& kernel : spmm_kernels())
      if (kernel.backend == storage->device.backend && kernel.format == storage->format && kernel.supports(*storage, kRhs))
        spmm_plans_.push_back(make_spmm_plan(kernel, storage, kRhs, kernel.policies(*storage, kRhs).front(), stream));
  }

  /// The results of all that give the same bits in every run, one behind the other; of the others, none but what is right.
  Bytes bits(const HostCsr& m) const {
    Bytes all;
    dispatch_operands(storage_->type, [&](auto tag, auto sum_tag) {
      using A = typename decltype(tag)::type;
      using T = typename decltype(sum_tag)::type;
      std::vector<A> x(static_cast<std::size_t>(kRhs.count * storage_->cols + 1));
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<A>(test::value_of(300 + j));
      const Buffer device_x = upload(x, stream_);
      const auto run = [&](std::int64_t columns, const auto& multiply) {
        const Buffer y(stream_.device(), static_cast<std::size_t>(columns * storage_->rows + 1) * sizeof(T));
        fill_bytes(y.data(), 0xff, y.bytes(), stream_);
        multiply(y.data());
        const Bytes result = download<char>(y, stream_);
        all.insert(all.end(), result.begin(), result.end());
      };
      if constexpr (std::is_same_v<A, T>) {
        for (const auto& plan : plans_) {
          if (plan->reproducible()) run(1, [&](void* y) { plan->multiply(1, device_x.data(), 0, y, stream_); });
          else test::check_plan<T>(*plan, m, storage_->type, stream_);
        }
      }
      for (const auto& plan : spmm_plans_)
        if (plan->reproducible())
          run(kRhs.count, [&](void* y) { plan->multiply(1, device_x.data(), kRhs.count, 0, y, kRhs.count, stream_); });
    });
    return all;
  }

 private:
  static constexpr RightHandSides kRhs{3, DenseOrder::row_major, DenseOrder::row_major};
  std::shared_ptr<Storage> storage_;
  Stream& stream_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<SpmmPlan>> spmm_plans_;
};

/// The columns of entries from the storage alone.
void check_columns(const ValueMap& map, const Storage& storage, const HostCsr& m, const Positions& positions,
                   Stream& stream) {
  const Buffer to = upload(std::vector<std::int32_t>(static_cast<std::size_t>(map.entries()), -1), stream);
  const bool can_tell = storage.format == "csr" || (storage.format == "packed" && storage.device.backend == Backend::cuda);
  ASSERT_EQ(map.write_columns(storage, to.as<std::int32_t>(), stream), can_tell);
  if (!can_tell) return;
  std::vector<std::int32_t> wanted(static_cast<std::size_t>(map.entries()), -1);
  for (std::size_t k = 0; k < m.col_idx.size(); ++k)
    wanted[positions.empty() ? k : static_cast<std::size_t>(positions[k])] = static_cast<std::int32_t>(m.col_idx[k]);
  EXPECT_EQ(download<std::int32_t>(to, stream), wanted);
}

/// The values of entries from the storage alone.
void check_values(const ValueMap& map, const Storage& storage, const HostCsr& m, const Positions& positions,
                  Stream& stream) {
  std::vector<double> wanted(static_cast<std::size_t>(map.entries()), -7);
  const Buffer to = upload(wanted, stream);
  map.write_values(storage, to.as<double>(), stream);
  for (std::size_t k = 0; k < m.values.size(); ++k)
    wanted[positions.empty() ? k : static_cast<std::size_t>(positions[k])] = rounded(storage.type, m.values[k]);
  EXPECT_EQ(download<double>(to, stream), wanted);
}

/// One layout of one matrix. Returns true if the format takes it.
bool check_layout(const Format& format, const Policy& layout, const HostCsr& a, ConversionInput& input) {
  Stream& stream = input.stream();
  if (format.bytes(input, layout) > largest_reasonable_bytes(input)) return false;
  const auto storage = store(format, input, layout);
  const Products products(storage, input.rows(), stream);
  const Bytes values = values_of(*storage, stream), product = products.bits(a);
  const ValueMap map(*storage, input);
  EXPECT_EQ(values_of(*storage, stream), values) << "the values are not those from before";
  EXPECT_EQ(products.bits(a), product);
  EXPECT_EQ(map.entries(), a.nnz());
  EXPECT_LE(map.bytes(), 4 * places_of(*storage));
  EXPECT_EQ(ValueMap::most_bytes(*storage, a.nnz() - 1), 4 * places_of(*storage));

  const HostCsr b = with_values(a, 7000);
  ConversionInput input_b(b.view(), input.type(), stream);
  const auto expected = store(format, input_b, layout);
  const Products expected_products(expected, input.rows(), stream);
  update(map, *storage, b, ValueType::f64, {}, stream);
  EXPECT_EQ(values_of(*storage, stream), values_of(*expected, stream));
  EXPECT_EQ(products.bits(b), expected_products.bits(b));
  check_values(map, *storage, b, {}, stream);
  if (!is_half(storage->type)) check_columns(map, *storage, b, {}, stream);

  const HostCsr c = with_values_of_f32(a, 8000);
  update_values(*expected, c.view(), stream);
  const Positions positions = shuffled(a.nnz());
  const ValueMap shuffled_map(*storage, input, positions);
  EXPECT_EQ(values_of(*storage, stream), values);
  EXPECT_EQ(shuffled_map.bytes(), 4 * places_of(*storage));
  update(shuffled_map, *storage, c, ValueType::f32, positions, stream);
  EXPECT_EQ(values_of(*storage, stream), values_of(*expected, stream));
  check_values(shuffled_map, *storage, c, positions, stream);
  if (!is_half(storage->type)) check_columns(shuffled_map, *storage, c, positions, stream);
  update(map, *storage, a, ValueType::f64, {}, stream);
  EXPECT_EQ(values_of(*storage, stream), values) << "padding included";
  return true;
}

/// One of each kind in the zoo, two of them also with their rows in no order.
std::vector<test::NamedMatrix> matrices() {
  const std::vector<std::string_view> left_out = {"diagonal",  "width 31",  "width 32", "width 255",
                                                  "width 256", "width 257", "wide",     "tall"};
  std::vector<test::NamedMatrix> all;
  for (test::NamedMatrix& zoo : test::matrix_zoo()) {
    if (std::find(left_out.begin(), left_out.end(), zoo.name) != left_out.end()) continue;
    zoo.matrix = with_values(std::move(zoo.matrix), 6000);
    if (zoo.name == "power law" || zoo.name == "node blocks")
      all.push_back({zoo.name + ", rows rotated", test::with_rows_rotated(zoo.matrix)});
    all.push_back(std::move(zoo));
  }
  return all;
}

void check_format(const Format& format, Backend backend) {
  Stream stream({backend, 0});
  int storages = 0;
  for (const test::NamedMatrix& zoo : matrices())
    for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::f16, ValueType::bf16}) {
      if (is_half(type) && format.name != "csr") continue;
      ConversionInput input(zoo.matrix.view(), type, stream);
      std::vector<Policy> layouts = test::layouts_to_try(format, input);
      if (format.name == "packed" && zoo.matrix.cols >= 6)
        for (const Policy& shape : test::packed_shapes(layouts.front())) layouts.push_back(shape);
      for (const Policy& layout : layouts) {
        SCOPED_TRACE(fmt::format("{} {} on {}", layout.text(), name(type), zoo.name));
        storages += check_layout(format, layout, zoo.matrix, input) ? 1 : 0;
      }
    }
  EXPECT_GT(storages, 0) << "took no matrix of the zoo";
}

std::vector<std::string> names_of_formats() {
  std::vector<std::string> names;
  for (const Format& format : formats())
    if (format.update != nullptr) names.emplace_back(format.name);
  return names;
}
std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class HostValueMaps : public testing::TestWithParam<std::string> {};
TEST_P(HostValueMaps, GivesWhatConversionGives) { check_format(find_format(GetParam()), Backend::host); }
INSTANTIATE_TEST_SUITE_P(, HostValueMaps, testing::ValuesIn(names_of_formats()), name_of);

class GpuValueMaps : public testing::TestWithParam<std::string> {};
TEST_P(GpuValueMaps, GivesWhatConversionGives) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_format(find_format(GetParam()), Backend::cuda);
}
INSTANTIATE_TEST_SUITE_P(, GpuValueMaps, testing::ValuesIn(names_of_formats()), name_of);

HostCsr zoo_matrix(std::string_view name) {
  for (test::NamedMatrix& zoo : test::matrix_zoo())
    if (zoo.name == name) return std::move(zoo.matrix);
  throw Error(ErrorKind::internal, "the zoo has no such matrix");
}

/// The text of the error of this kind that `call` throws.
template <class Call>
std::string refusal(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A format whose two value arrays both have padding or a part of the rows, stored with its map.
struct Stored {
  HostCsr matrix;
  Stream stream;
  ConversionInput input;
  std::shared_ptr<Storage> storage;

  Stored(std::string_view format, ValueType type, Backend backend = Backend::host)
      : matrix(zoo_matrix("banded")),
        stream({backend, 0}),
        input(matrix.view(), type, stream),
        storage(store(find_format(format), input, find_format(format).layouts(input).front())) {}
};

TEST(ValueMap, OfCsrInOrderTakesNothing) {
  Stored csr("csr", ValueType::f64);
  EXPECT_EQ(ValueMap(*csr.storage, csr.input).bytes(), 0);
  Stored ell("ell", ValueType::f64);
  EXPECT_EQ(ValueMap(*ell.storage, ell.input).bytes(), 4 * places_of(*ell.storage));
}

TEST(ValueMap, OthersOfTheInputKeepTheirValues) {
  Stored sell("sell", ValueType::f64);
  const auto csr = store(find_format("csr"), sell.input, {});
  const Bytes before = values_of(*csr, sell.stream);
  const ValueMap map(*sell.storage, sell.input);
  EXPECT_EQ(values_of(*csr, sell.stream), before);
  EXPECT_EQ(sell.input.matrix().values.data(), sell.matrix.values.data());
}

TEST(ValueMap, RefusesWhatDoesNotFit) {
  Stored ell("ell", ValueType::f64), csr("csr", ValueType::f64), single("ell", ValueType::f32);
  const auto nnz = static_cast<std::size_t>(ell.matrix.nnz());
  const auto with = [&](const Positions& positions) { return [&] { ValueMap(*ell.storage, ell.input, positions); }; };
  EXPECT_EQ(refusal(ErrorKind::usage, with(Positions(3))),
            fmt::format("3 positions of values came for {} nonzeros; each nonzero needs one", nnz));
  Positions negative(nnz);
  negative[nnz / 2] = -7;
  EXPECT_EQ(refusal(ErrorKind::usage, with(negative)), "a position of values is -7; they count from 0");
  refusal(ErrorKind::internal, [&] { ValueMap(*single.storage, ell.input); });

  const ValueMap map(*ell.storage, ell.input);
  const Bytes before = values_of(*ell.storage, ell.stream);
  const auto put = [&](Storage& storage, std::size_t count, ValueType type) {
    return [&, count, type] {
      map.update(storage, ell.matrix.values.data(), static_cast<std::int64_t>(count), type, ell.stream);
    };
  };
  EXPECT_EQ(refusal(ErrorKind::usage, put(*ell.storage, nnz - 1, ValueType::f64)),
            fmt::format("new values need {} entries, but come with {}", nnz, nnz - 1));
  EXPECT_EQ(refusal(ErrorKind::usage, put(*ell.storage, nnz, ValueType::bf16)),
            "new values must be f64 or f32, and are bf16");
  refusal(ErrorKind::internal, put(*csr.storage, nnz, ValueType::f64));
  refusal(ErrorKind::internal, put(*single.storage, nnz, ValueType::f64));
  EXPECT_EQ(values_of(*ell.storage, ell.stream), before);
}

TEST(ValueMap, RefusesAFormatThatTakesNoNewValues) {
  Stored symmetric("symmetric", ValueType::f64);
  const Bytes before = values_of(*symmetric.storage, symmetric.stream);
  const std::string expected = "a matrix in format symmetric takes no new values; store it in another format";
  EXPECT_EQ(refusal(ErrorKind::usage, [&] { ValueMap(*symmetric.storage, symmetric.input); }), expected);
  EXPECT_EQ(refusal(ErrorKind::usage, [&] { update_values(*symmetric.storage, symmetric.matrix.view(), symmetric.stream); }),
            expected);
  EXPECT_EQ(values_of(*symmetric.storage, symmetric.stream), before);
}

/// Its array has room for values that no nonzero has.
TEST(ValueMap, RefusesAFormatThatFillsPadding) {
  Stored csr("csr", ValueType::f64);
  auto& storage = static_cast<CsrStorage&>(*csr.storage);
  storage.values = Buffer(csr.stream.device(), storage.values.bytes() + 80);
  std::fill_n(storage.values.as<double>(), storage.values.bytes() / sizeof(double), 3.0);
  const std::string text = refusal(ErrorKind::internal, [&] { ValueMap(storage, csr.input); });
  EXPECT_NE(text.find(fmt::format("format csr has {} places with values for {} nonzeros", csr.matrix.nnz() + 10,
                                  csr.matrix.nnz())),
            std::string::npos)
      << text;
}

TEST(ValueMap, RefusesWithoutMemoryAndLeavesValues) {
  Stored ell("ell", ValueType::f64);
  const Bytes before = values_of(*ell.storage, ell.stream);
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit old{};
  getrlimit(RLIMIT_AS, &old);
  const rlimit small{static_cast<rlim_t>(pages * 4096 + (64 << 10)), old.rlim_max};
  setrlimit(RLIMIT_AS, &small);
  const std::string text = refusal(ErrorKind::resources, [&] { ValueMap(*ell.storage, ell.input); });
  setrlimit(RLIMIT_AS, &old);
  EXPECT_NE(text.find("the map that new values are put in with"), std::string::npos) << text;
  EXPECT_EQ(values_of(*ell.storage, ell.stream), before);
  EXPECT_GT(ValueMap(*ell.storage, ell.input).bytes(), 0);
}

/// Memory of which only what is written is there.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Reserved() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  float* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<float*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

/// Positions from 0 to `last` in about equal steps, all digits of which differ.
Positions spread(std::int64_t nnz, std::int64_t last) {
  Positions positions(static_cast<std::size_t>(nnz));
  for (std::int64_t k = 0; k < nnz; ++k) positions[static_cast<std::size_t>(k)] = last - (nnz - 1 - k) * (last / nnz);
  return positions;
}

constexpr std::int64_t kLastOfNarrow = (std::int64_t{1} << 32) - 3;  ///< one more needs 64 bits

TEST(ValueMap, TakesPositionsOfManyDigits) {
  const Reserved entries(static_cast<std::size_t>(kLastOfNarrow + 2) * sizeof(float));
  if (entries.data() == nullptr) GTEST_SKIP() << "no address space for 2^32 values";
  for (const auto& [format, type] : {std::pair("csr", ValueType::f16), std::pair("csr", ValueType::bf16),
                                     std::pair("hyb", ValueType::f32), std::pair("packed", ValueType::f64)})
    for (const std::int64_t last : {std::int64_t{(1 << 24) + 5}, kLastOfNarrow, kLastOfNarrow + 1}) {
      SCOPED_TRACE(fmt::format("{} {} up to {}", format, name(type), last));
      Stored a(format, type), expected(format, type);
      const HostCsr b = with_values_of_f32(a.matrix, 9000);
      update_values(*expected.storage, b.view(), a.stream);
      const Positions positions = spread(b.nnz(), last);
      const ValueMap map(*a.storage, a.input, positions);
      EXPECT_EQ(map.entries(), last + 1);
      EXPECT_EQ(map.bytes(), (last > kLastOfNarrow ? 8 : 4) * places_of(*a.storage));
      EXPECT_EQ(map.bytes(), ValueMap::most_bytes(*a.storage, last));
      for (std::size_t k = 0; k < positions.size(); ++k) entries.data()[positions[k]] = static_cast<float>(b.values[k]);
      map.update(*a.storage, entries.data(), last + 1, ValueType::f32, a.stream);
      EXPECT_EQ(values_of(*a.storage, a.stream), values_of(*expected.storage, a.stream));
    }
}

TEST(GpuValueMap, TakesPositionsOfManyDigits) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  if (available_memory({Backend::cuda, 0}) < 4 * (kLastOfNarrow + (1 << 28))) GTEST_SKIP() << "no memory for 2^32 values";
  const Buffer entries({Backend::cuda, 0}, static_cast<std::size_t>(kLastOfNarrow + 2) * sizeof(float));
  for (const std::int64_t last : {std::int64_t{(1 << 24) + 5}, kLastOfNarrow, kLastOfNarrow + 1}) {
    SCOPED_TRACE(last);
    Stored a("packed", ValueType::f32, Backend::cuda), expected("packed", ValueType::f32, Backend::cuda);
    const HostCsr b = with_values_of_f32(a.matrix, 9000);
    update_values(*expected.storage, b.view(), a.stream);
    const Positions positions = spread(b.nnz(), last);
    const ValueMap map(*a.storage, a.input, positions);
    EXPECT_EQ(map.bytes(), (last > kLastOfNarrow ? 8 : 4) * places_of(*a.storage));
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const auto value = static_cast<float>(b.values[k]);
      copy_to_device(entries.as<float>() + positions[k], &value, sizeof value, a.stream);
    }
    map.update(*a.storage, entries.data(), last + 1, ValueType::f32, a.stream);
    EXPECT_EQ(values_of(*a.storage, a.stream), values_of(*expected.storage, a.stream));
  }
}

/// An update recorded once puts in what the entries hold whenever it runs.
void check_graph(Backend backend) {
  Stored a("packed", ValueType::f64, backend), expected("packed", ValueType::f64, backend);
  const ValueMap map(*a.storage, a.input);
  const Buffer entries(a.stream.device(), a.matrix.values.size() * sizeof(double));
  Graph graph(a.stream, [&] { map.update(*a.storage, entries.data(), a.matrix.nnz(), ValueType::f64, a.stream); });
  for (const std::size_t seed : {100, 200}) {
    const HostCsr b = with_values(a.matrix, seed);
    copy_to_device(entries.data(), b.values.data(), entries.bytes(), a.stream);
    graph.launch(a.stream);
    update_values(*expected.storage, b.view(), a.stream);
    EXPECT_EQ(values_of(*a.storage, a.stream), values_of(*expected.storage, a.stream));
  }
}

TEST(ValueMap, GraphsRecordUpdates) { check_graph(Backend::host); }
TEST(GpuValueMap, GraphsRecordUpdates) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_graph(Backend::cuda);
}

void check_range(Backend backend) {
  Stream stream({backend, 0});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(100'000, 0.5);
  values[3] = kInfinity, values[4] = std::nan("");
  const auto first_wrong = [&] {
    const Buffer entries = upload(values, stream);
    return first_not_finite(entries.data(), std::ssize(values), ValueType::f64, stream);
  };
  EXPECT_EQ(first_wrong(), 3);
  values[3] = 1, values[90'000] = -kInfinity;
  EXPECT_EQ(first_wrong(), 4);
  values[4] = 1;
  EXPECT_EQ(first_wrong(), 90'000);
  values[90'000] = 1;
  EXPECT_EQ(first_wrong(), std::nullopt);
  values[3] = kInfinity, values[4] = std::nan("");
  const auto check = [&](ValueType type) {
    const Buffer entries = upload(values, stream);
    require_values_in_range(type, entries.data(), std::ssize(values), ValueType::f64, "the new values", stream);
  };
  for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::f16, ValueType::bf16}) check(type);
  values[70'000] = values[90'000] = -1e39;
  check(ValueType::f64);
  EXPECT_EQ(refusal(ErrorKind::input, [&] { check(ValueType::f32); }),
            "entry 70001 of the new values is -1e+39, beyond what f32 holds (3.4e38); use f64");
  values[50'000] = 65520;
  EXPECT_EQ(refusal(ErrorKind::input, [&] { check(ValueType::f16); }),
            "entry 50001 of the new values is 65520, beyond what f16 holds (65504); use bf16 or f32");
  values[50'000] = 65519.9;
  EXPECT_NE(refusal(ErrorKind::input, [&] { check(ValueType::f16); }).find("entry 70001"), std::string::npos);

  const Buffer largest = upload(std::vector<float>{1, std::numeric_limits<float>::max()}, stream);
  const auto check_f32 = [&](ValueType type) {
    require_values_in_range(type, largest.data(), 2, ValueType::f32, "the new values", stream);
  };
  check_f32(ValueType::f64), check_f32(ValueType::f32);
  EXPECT_NE(refusal(ErrorKind::input, [&] { check_f32(ValueType::bf16); }).find("entry 2 of"), std::string::npos);
  require_values_in_range(ValueType::f32, nullptr, 0, ValueType::f64, "no values", stream);
}

TEST(ValueMap, ValuesInRange) { check_range(Backend::host); }
TEST(GpuValueMap, ValuesInRange) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda_device();
  check_range(Backend::cuda);
}

}  // namespace
}  // namespace shardmat
