#include "kernels/base/error.h"
#include "kernels/base/l1_cache.h"

namespace shardmat {

L1Cache l1_cache(Device) { throw Error(ErrorKind::internal, "only GPUs have multiprocessors with an L1 cache"); }

}  // namespace shardmat
