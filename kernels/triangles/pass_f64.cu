// Passes over triangles of factors in f64.
#include "kernels/triangles/pass_kernels.h"

namespace shardmat::triangles {

template void run_pass(const Pass<double>& pass, int size, bool waits, Stream& stream);

}  // namespace shardmat::triangles
