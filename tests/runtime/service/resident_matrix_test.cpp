#include "runtime/service/engine/resident_matrix.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "kernels/base/error.h"
#include "runtime/service/engine/shared_arena.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"

namespace shardmat::service {
namespace {

/// Why a service cannot run here; empty if it can.
std::string why_no_service(const Context& context) {
  const Communicator& ranks = context.communicator();
  return ranks.local_size() == ranks.size() ? "" : "the ranks of a service share memory, and these are on several hosts";
}

/// Products of `columns` random vectors in one product of the given width.
template <class T>
std::vector<std::vector<T>> products(ResidentMatrix& matrix, Memories& memories, Context& context, std::int64_t width,
                                     std::span<const std::vector<T>> x, std::int64_t rows, double alpha, double beta) {
  const Arena& arena = memories.arena();
  Communicator& ranks = context.communicator();
  Multiply command{1, width, {}};
  std::uint64_t offset = 0;
  for (const auto& column : x) {
    const std::uint64_t x_bytes = column.size() * sizeof(T), y_bytes = static_cast<std::uint64_t>(rows) * sizeof(T);
    if (ranks.rank() == 0) {
      std::memcpy(arena.at(offset, x_bytes).data(), column.data(), x_bytes);
      std::memset(arena.at(offset + x_bytes, y_bytes).data(), beta == 0 ? 0xff : 0x3e, y_bytes);  // NaN, or numbers below 1
    }
    command.columns.push_back({{0, offset}, {0, offset + x_bytes}, alpha, beta});
    offset += x_bytes + y_bytes;
  }
  ranks.barrier();
  matrix.multiply(command, memories, ResidentVectors(context));
  ranks.barrier();
  std::vector<std::vector<T>> y;
  for (const Column& column : command.columns) {
    const auto bytes = arena.at(column.y.offset, static_cast<std::uint64_t>(rows) * sizeof(T));
    y.emplace_back(static_cast<std::size_t>(rows));
    std::memcpy(y.back().data(), bytes.data(), bytes.size());
  }
  ranks.barrier();
  return y;
}

template <class T>
void expect_same_bits(const std::string& matrix_name, const Case& c, double beta) {
  Context& context = context_of(c);
  ResidentMatrix matrix(open_matrix(matrix_name, context), context, Load{1, matrix_name, c.type, c.exchange}, "");
  const Loaded loaded = matrix.description();
  const Arena arena = make_shared_arena(context.communicator(), std::uint64_t{16} << 20);
  Memories memories(arena, context.device());
  const auto cols = static_cast<std::size_t>(loaded.cols);
  std::mt19937 random(7);
  std::vector<std::vector<T>> x(static_cast<std::size_t>(kMostColumns), std::vector<T>(cols));
  for (auto& column : x)
    for (T& value : column) value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  std::vector<std::vector<T>> single;
  const std::int64_t narrowest = loaded.widths.front().width;
  for (const auto& column : x)
    single.push_back(products<T>(matrix, memories, context, narrowest, std::span(&column, 1), loaded.rows, 0.3, beta)[0]);
  EXPECT_FALSE(loaded.why.empty());
  std::int64_t bytes = 0;
  for (const WidthTime& width : loaded.widths) {  // wider products move more: the same rows, and more of X and Y
    EXPECT_GT(width.bytes, bytes);
    bytes = width.bytes;
  }
  for (const WidthTime& width : loaded.widths)
    for (const std::int64_t columns : {width.width, std::max<std::int64_t>(1, width.width - 1), kMostColumns - 1}) {
      const auto some = std::span<const std::vector<T>>(x).first(static_cast<std::size_t>(columns));
      const auto y = products<T>(matrix, memories, context, width.width, some, loaded.rows, 0.3, beta);
      for (std::size_t j = 0; j < y.size(); ++j)
        EXPECT_EQ(std::memcmp(y[j].data(), single[j].data(), y[j].size() * sizeof(T)), 0)
            << matrix_name << ", column " << j << " of " << columns << " in a product of " << width.width;
    }
}

void expect_same_bits_in_every_product(const Case& c) {
  if (const std::string why_not = why_no_service(context_of(c)); !why_not.empty()) GTEST_SKIP() << why_not;
  for (const char* name : {"poisson27:n=7", "elasticity:n=4", "random:n=300", "banded:n=200"})
    for (const double beta : {0.0, -0.7})
      if (c.type == ValueType::f32) expect_same_bits<float>(name, c, beta);
      else expect_same_bits<double>(name, c, beta);
}
SHARDMAT_VECTOR_TEST(ResidentMatrix, AColumnHasTheSameBitsInEveryProduct, expect_same_bits_in_every_product)

/// Bits of a product of the narrowest width, for two vectors.
template <class T>
std::vector<std::vector<T>> product_of_a_load(const std::string& name, const Case& c, const std::string& choices) {
  Context& context = context_of(c);
  ResidentMatrix matrix(open_matrix(name, context), context, Load{1, name, c.type, c.exchange}, choices);
  const Loaded loaded = matrix.description();
  const Arena arena = make_shared_arena(context.communicator(), std::uint64_t{4} << 20);
  Memories memories(arena, context.device());
  std::mt19937 random(3);
  std::vector<T> x(static_cast<std::size_t>(loaded.cols));
  for (T& value : x) value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  return products<T>(matrix, memories, context, loaded.widths.front().width, std::span(&x, 1), loaded.rows, 1, 0);
}

template <class T>
void expect_same_bits_again(const Case& c) {
  Communicator& ranks = context_of(c).communicator();
  const std::string choices = ranks.broadcast(testing::TempDir() + "shardmat_choices_" + std::to_string(getpid()));
  for (const char* name : {"poisson27:n=7", "elasticity:n=8", "random:n=300", "rmat:scale=8"}) {
    const auto first = product_of_a_load<T>(name, c, choices);
    for (int load = 0; load < 5; ++load) EXPECT_EQ(product_of_a_load<T>(name, c, choices), first) << name;
  }
  ranks.barrier();
  if (ranks.rank() == 0) std::filesystem::remove_all(choices);
}

void expect_same_bits_after_another_load(const Case& c) {
  if (const std::string why_not = why_no_service(context_of(c)); !why_not.empty()) GTEST_SKIP() << why_not;
  if (c.type == ValueType::f32) expect_same_bits_again<float>(c);
  else expect_same_bits_again<double>(c);
}
SHARDMAT_VECTOR_TEST(ResidentMatrix, ALoadAgainGivesTheSameBits, expect_same_bits_after_another_load)

TEST(ResidentMatrix, WhatIsNotThereIsRefusedAlike) {
  Context& context = context_of(kHost64);
  if (const std::string why_not = why_no_service(context); !why_not.empty()) GTEST_SKIP() << why_not;
  Communicator& ranks = context.communicator();
  const ResidentVectors vectors(context);
  ResidentMatrix matrix(open_matrix("poisson:n=4", context), context, Load{1, "", ValueType::f64, "auto"}, "");
  const Arena arena = make_shared_arena(ranks, 1 << 16);
  Memories memories(arena);
  EXPECT_THROW(matrix.multiply({1, 3, {}}, memories, vectors), AgreedError);
  EXPECT_THROW(matrix.multiply({1, 1, {Column{{5, 0}, {}, 1, 0}}}, memories, vectors), AgreedError);
  EXPECT_THROW(matrix.multiply({1, 2, {Column{}, Column{}}, 5, 0}, memories, vectors), AgreedError);
  EXPECT_THROW(matrix.put_values({1, 0, 1, 0}, memories), AgreedError);
  EXPECT_THROW(ResidentMatrix(open_matrix("poisson:n=4", context), context, Load{1, "", ValueType::f16, "auto"}, ""), Error);
}

}  // namespace
}  // namespace shardmat::service
