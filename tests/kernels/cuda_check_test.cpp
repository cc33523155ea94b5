#include "kernels/base/cuda_check.h"

#include <gtest/gtest.h>

#include <string>

namespace shardmat {
namespace {

std::string message_of(cudaError_t status, ErrorKind kind) {
  try {
    cuda::check(status, "a call", "a file", 12);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

TEST(CudaCheck, SaysWhatToDoWhereTheBuildHasNoCodeForTheGpu) {
  EXPECT_NE(message_of(cudaErrorNoKernelImageForDevice, ErrorKind::resources).find("CMAKE_CUDA_ARCHITECTURES=native"),
            std::string::npos);
}

TEST(CudaCheck, NamesCallAndPlace) {
  EXPECT_NE(message_of(cudaErrorMemoryAllocation, ErrorKind::resources).find("in a call (a file:12)"), std::string::npos);
  EXPECT_NE(message_of(cudaErrorInvalidValue, ErrorKind::internal).find("in a call (a file:12)"), std::string::npos);
  EXPECT_EQ(message_of(cudaSuccess, ErrorKind::internal), "no error");
}

}  // namespace
}  // namespace shardmat
