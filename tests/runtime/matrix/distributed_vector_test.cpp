// Vectors on the ranks: scattered and gathered, from views, in files.
#include "runtime/matrix/distributed_vector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

using test::TestMatrix;
using test::x_at;

/// x_at() of each original index.
HostVector<double> all_entries(std::int64_t rows, std::int64_t columns) {
  HostVector<double> values;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(x_at(i, j));
  return values;
}

void scatters_and_gathers(const Case& c) {
  for (const LocalSort sort : {LocalSort::none, LocalSort::by_length})
    for (const char* specification : {"elasticity:n=5", "random:n=40,cols=70"})
      for (const std::int64_t columns : {1, 3})
        for (const VectorLayout layout : {VectorLayout::rows, VectorLayout::columns}) {
          TestMatrix f(c, specification, sort);
          Stream& stream = f.context.stream();
          DistributedVector v(f.matrix, layout, c.type, columns);
          const HostVector<double> all = all_entries(v.rows(), columns);
          const bool root = world().rank() == 0;
          v.scatter(root ? std::span<const double>(all) : std::span<const double>(), stream);
          EXPECT_EQ(v.gather(stream), root ? all : HostVector<double>());
          const HostVector<double> local = to_host(v.view().data, v.local_rows() * columns, c.type, stream);
          for (std::size_t i = 0; i < v.ids().size(); ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              ASSERT_EQ(local[i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)], x_at(v.ids()[i], j));
          const HostVector<double> own = v.own(stream);
          v.fill(3, stream);
          EXPECT_EQ(v.own(stream), HostVector<double>(own.size(), 3.0));
          v.set_own(own, stream);
          EXPECT_EQ(v.gather(stream), root ? all : HostVector<double>());
          const std::string path = world().broadcast(
              fmt::format("{}/shardmat_vector_{}.npy", std::filesystem::temp_directory_path().string(), ::getpid()));
          v.write(path, "v", stream);
          v.fill(0, stream);
          v.read(*open_vector(path, "v", v.rows(), 0, columns), stream);
          EXPECT_EQ(v.own(stream), own);
          world().barrier();
          if (root) std::filesystem::remove(path);
        }
}

/// A matrix of the caller in memory of a device.
struct View {
  Buffer memory;
  Dense view;
  HostVector<double> entries;  ///< gaps included

  View(const DistributedVector& v, ValueType type, DenseOrder order, std::int64_t gap, Device device) {
    const bool by_rows = order == DenseOrder::row_major;
    const std::int64_t rows = v.own_rows(), leading = (by_rows ? v.columns() : rows) + gap;
    entries.assign(static_cast<std::size_t>(leading * (by_rows ? rows : v.columns())), 99.0);
    memory = Buffer(device, entries.size() * size_of(type));
    view = {memory.data(), rows, v.columns(), leading, order, type, device};
  }
  double& at(std::int64_t i, std::int64_t j) {
    const bool by_rows = view.order == DenseOrder::row_major;
    return entries[static_cast<std::size_t>(by_rows ? i * view.leading + j : i + j * view.leading)];
  }
};

void expect_view_works(DistributedVector& v, View& given, Stream& stream) {
  Stream host(Device{});
  Stream& stream_of_view = given.view.device == stream.device() ? stream : host;
  HostVector<double> by_row, doubled;
  for (std::int64_t i = 0; i < v.own_rows(); ++i)
    for (std::int64_t j = 0; j < v.columns(); ++j) by_row.push_back(given.at(i, j) = x_at(i + 1000, j));
  to_device(given.view.data, given.entries, given.view.type, stream_of_view);
  v.set_own(given.view, stream);
  EXPECT_EQ(v.own(stream), by_row);
  for (const double value : by_row) doubled.push_back(2 * value);
  v.set_own(doubled, stream);
  v.own(given.view, stream);
  for (std::int64_t i = 0; i < v.own_rows(); ++i)
    for (std::int64_t j = 0; j < v.columns(); ++j) given.at(i, j) *= 2;
  EXPECT_EQ(to_host(given.view.data, std::ssize(given.entries), given.view.type, stream_of_view), given.entries)
      << "entries or gaps";
}

/// Each order, with gaps and without, each type, in memory of the host and of the device.
void takes_views(const Case& c) {
  TestMatrix f(c, "banded:n=50", LocalSort::by_length);
  for (const std::int64_t columns : {1, 3}) {
    DistributedVector v(f.matrix, VectorLayout::columns, c.type, columns);
    for (const ValueType type : {ValueType::f64, ValueType::f32, ValueType::bf16})
      for (const DenseOrder order : {DenseOrder::row_major, DenseOrder::column_major})
        for (const std::int64_t gap : {0, 2})
          for (const Device device : {Device{}, f.context.device()}) {
            SCOPED_TRACE(testing::Message() << columns << " columns of " << name(type) << ", gap " << gap);
            View given(v, type, order, gap, device);
            expect_view_works(v, given, f.context.stream());
          }
  }
}

SHARDMAT_VECTOR_TEST(DistributedVector, ScattersAndGathers, scatters_and_gathers)
SHARDMAT_VECTOR_TEST(DistributedVector, TakesViews, takes_views)

/// A rank that stays away while the others multiply: whoever reads y then does not wait for ever.
void lost_rank_ends_reading(const Case& c) {
  Communicator ranks(world().native(), 3);
  auto context = std::make_unique<Context>(ranks, c.backend);
  auto matrix = std::make_unique<DistributedMatrix>(open_matrix("elasticity:n=8", ranks), *context, test::options_for(c));
  auto x = std::make_unique<DistributedVector>(*matrix, VectorLayout::columns, c.type);
  auto y = std::make_unique<DistributedVector>(*matrix, VectorLayout::rows, c.type);
  std::unique_ptr<Product> product = matrix->product();
  Stream& stream = context->stream();
  x->fill(1, stream);
  product->multiply(1, x->view(), 0, y->view(), stream);
  y->own(stream);
  if (world().rank() != 0) {
    // A rank that gives up first may let a product of others end; then the next one does not.
    const std::string message = error_of(ErrorKind::rank_lost, [&] {
      for (;;) product->multiply(1, x->view(), 0, y->view(), stream), y->own(stream);
    });
    EXPECT_NE(message.find("before a vector is copied"), std::string::npos) << message;
    EXPECT_TRUE(ranks.broken());
  }
  world().barrier();
  ranks.mark_broken("rank 0 stayed away");
  product.reset(), y.reset(), x.reset(), matrix.reset(), context.reset();
  world().barrier();
}

TEST(MultiGpuDistributedVector, LostRankEndsReadingHalo) { on_gpus(lost_rank_ends_reading, kCudaHalo); }
TEST(MultiGpuDistributedVector, LostRankEndsReadingPeer) { on_peers(lost_rank_ends_reading, kCudaPeer); }

TEST(DistributedVector, HalvesComeBack) {
  TestMatrix f(kHost64, "banded:n=50", LocalSort::none);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::bf16);
  x.fill(1.5, stream);
  EXPECT_EQ(x.own(stream), HostVector<double>(static_cast<std::size_t>(x.local_rows()), 1.5));
}

TEST(DistributedVector, WrongSizesAreRefused) {
  TestMatrix f(kHost64, "banded:n=50", LocalSort::none);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f64, 2);
  const HostVector<double> few(1);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.set_own(few, stream); }).find("1 values for"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { x.scatter(few, stream); }).find("1 values came"), std::string::npos);
  EXPECT_NE(error_of(ErrorKind::usage, [&] { DistributedVector(f.matrix, VectorLayout::rows, ValueType::f64, 0); })
                .find("0 columns"),
            std::string::npos);
}

TEST(DistributedVector, WrongViewsAreRefused) {
  TestMatrix f(kHost64, "banded:n=50", LocalSort::none);
  Stream& stream = f.context.stream();
  DistributedVector x(f.matrix, VectorLayout::rows, ValueType::f32, 2);
  HostVector<double> memory(200, 1e300);
  const Dense right{memory.data(), x.own_rows(), 2, 2, DenseOrder::row_major, ValueType::f64, {}};
  const auto refused = [&](auto change, ErrorKind kind = ErrorKind::usage) {
    Dense view = right;
    change(view);
    return error_of(kind, [&] { x.set_own(view, stream); });
  };
  EXPECT_NE(refused([](Dense& d) { d.rows += 1; }).find("but this rank has"), std::string::npos);
  EXPECT_NE(refused([](Dense& d) { d.columns = 3; }).find("× 3, but this rank has"), std::string::npos);
  EXPECT_NE(refused([](Dense& d) { d.leading = 1; }).find("leading dimension of 1, but their rows"), std::string::npos);
  EXPECT_NE(refused([](Dense& d) { d.order = DenseOrder::column_major, d.leading = d.rows - 1; }).find("but their columns"),
            std::string::npos);
  EXPECT_NE(refused([](Dense& d) { d.data = nullptr; }).find("null pointer"), std::string::npos);
  EXPECT_NE(refused([](Dense& d) {
              d.device = {Backend::cuda, 5};
            }).find("on GPU 5, but the vector is on the host"),
            std::string::npos);
  EXPECT_NE(refused([](Dense&) {}, ErrorKind::input).find("1e+300"), std::string::npos);
  x.fill(3, stream);
  x.own(right, stream);
  EXPECT_EQ(memory[0], 3);
}

}  // namespace
}  // namespace shardmat
