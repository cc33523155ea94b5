// For builds without CUDA.
#include "tools/bench/factors_library.h"

namespace shardmat::tools {

std::unique_ptr<LibrarySolves> make_library_solves(const triangles::HostFactors&, Stream&) { return nullptr; }

}  // namespace shardmat::tools
