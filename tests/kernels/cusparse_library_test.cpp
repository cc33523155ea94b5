#include "kernels/base/cusparse_library.h"

#include <gtest/gtest.h>

namespace shardmat {
namespace {

TEST(CusparseLibrary, IsLoadedWithoutAGpu) {
  int major = 0;
  ASSERT_EQ(cuda::cusparse().GetProperty(MAJOR_VERSION, &major), CUSPARSE_STATUS_SUCCESS);
  EXPECT_EQ(major, CUSPARSE_VER_MAJOR);
}

}  // namespace
}  // namespace shardmat
