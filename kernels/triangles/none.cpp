// A build without CUDA.
#include "kernels/base/error.h"
#include "kernels/triangles/pass.h"

namespace shardmat::triangles {

template <class V>
void run_pass(const Pass<V>&, int, bool, Stream&) {
  throw Error(ErrorKind::internal, "this build has no GPU kernels");
}
template void run_pass(const Pass<float>&, int, bool, Stream&);
template void run_pass(const Pass<double>&, int, bool, Stream&);

}  // namespace shardmat::triangles
