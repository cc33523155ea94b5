#include "kernels/base/cusparse_library.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/base/late_library.h"

namespace shardmat::cuda {

CusparseCalls::CusparseCalls() {
  static const std::string file = fmt::format("libcusparse.so.{}", CUSPARSE_VER_MAJOR);
  const LateLibrary library{"cuSPARSE", file.c_str(), SHARDMAT_CUSPARSE_DIR,
                            fmt::format("{}.{}.{}", CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH),
                            fmt::format("the libraries of CUDA {}", CUDART_VERSION / 1000)};
  void* const loaded = load(library);
#define SHARDMAT_CUSPARSE_CALL(name) find(loaded, library, "cusparse" #name, name);
  SHARDMAT_CUSPARSE_CALLS(SHARDMAT_CUSPARSE_CALL)
#undef SHARDMAT_CUSPARSE_CALL
}

const CusparseCalls& cusparse() {
  static const CusparseCalls loaded;
  return loaded;
}

}  // namespace shardmat::cuda
