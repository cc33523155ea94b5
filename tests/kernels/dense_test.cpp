#include "kernels/base/dense.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

std::string refused(const Dense& view) {
  try {
    require_dense("Y", view, 3, 2, ValueType::f32, Device{});
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "nothing";
}

TEST(Dense, MessagesNameBothSides) {
  std::vector<float> memory(12);
  const Dense right{memory.data(), 3, 2, 4, DenseOrder::row_major, ValueType::f32, {}};
  EXPECT_EQ(refused(right), "nothing");
  const auto changed = [&](auto change) {
    Dense wrong = right;
    change(wrong);
    return refused(wrong);
  };
  EXPECT_EQ(changed([](Dense& d) { d.rows = 4; }),
            "Y is 4 × 2 of f32 on the host, but the product takes 3 × 2 of f32 on the host");
  EXPECT_NE(changed([](Dense& d) { d.columns = 1; }).find("3 × 1"), std::string::npos);
  EXPECT_NE(changed([](Dense& d) { d.type = ValueType::f64; }).find("of f64 on the host, but"), std::string::npos);
  EXPECT_NE(changed([](Dense& d) { d.device = {Backend::cuda, 1}; }).find("on GPU 1, but"), std::string::npos);
  EXPECT_EQ(changed([](Dense& d) { d.order = DenseOrder::column_major; }), "nothing");
  EXPECT_NE(changed([](Dense& d) { d.order = DenseOrder::column_major, d.leading = 2; }).find("its columns have 3 entries"),
            std::string::npos);
  EXPECT_NE(changed([](Dense& d) { d.leading = 1; }).find("leading dimension of Y is 1"), std::string::npos);
  EXPECT_NE(changed([](Dense& d) { d.data = nullptr; }).find("null pointer"), std::string::npos);
}

TEST(Dense, OneColumnHasNoOrderButNoGaps) {
  std::vector<double> memory(6);
  Dense vector{memory.data(), 3, 1, 3, DenseOrder::column_major, ValueType::f64, {}};
  EXPECT_NO_THROW(require_dense("X", vector, 3, 1, ValueType::f64, Device{}));
  vector.order = DenseOrder::row_major, vector.leading = 2;
  EXPECT_THROW(require_dense("X", vector, 3, 1, ValueType::f64, Device{}), Error);
  vector.leading = 1;
  EXPECT_NO_THROW(require_dense("X", vector, 3, 1, ValueType::f64, Device{}));
}

}  // namespace
}  // namespace shardmat
