// Passes over triangles of factors in f32.
#include "kernels/triangles/pass_kernels.h"

namespace shardmat::triangles {

template void run_pass(const Pass<float>& pass, int size, bool waits, Stream& stream);

}  // namespace shardmat::triangles
