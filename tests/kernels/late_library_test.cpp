#include "kernels/base/late_library.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

constexpr const char* kNowhere = "/nowhere";

template <class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::resources);
    return error.what();
  }
  return "no error";
}

TEST(LateLibrary, FunctionsAreFound) {
  const LateLibrary library{"the mathematical library", "libm.so.6", kNowhere, "2", "libc6"};
  double (*cosine)(double) = nullptr;
  find(load(library), library, "cos", cosine);
  EXPECT_EQ(cosine(0), 1);
}

TEST(LateLibrary, AMissingOneIsNamedWithVersionPlaceAndRemedy) {
  const std::string message = refused([] {
    load({"NCCL", "libnowhere.so.2", kNowhere, "2.28.9", "NCCL (package libnccl2)"});
  });
  for (const char* part : {"NCCL 2.28.9 cannot be loaded: libnowhere.so.2: ", "nor is it in /nowhere",
                           "Install NCCL (package libnccl2)", "LD_LIBRARY_PATH", "host backend"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(LateLibrary, AMissingFunctionIsNamed) {
  const LateLibrary library{"the mathematical library", "libm.so.6", kNowhere, "2.36", "libc6"};
  void (*function)() = nullptr;
  const std::string message = refused([&] { find(load(library), library, "no_such_function", function); });
  for (const char* part : {"libm.so.6", "no_such_function", "2.36", "libc6"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace
}  // namespace shardmat
