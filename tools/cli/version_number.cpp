// Apart from version.cpp, because shardmat-serve has it, too, and knows nothing of MPI.
#include "tools/cli/version.h"

namespace shardmat::tools {

std::string version_number() { return SHARDMAT_VERSION; }
std::string commit() { return SHARDMAT_COMMIT; }

}  // namespace shardmat::tools
