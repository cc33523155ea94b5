// Tells files of one name on several hosts apart without reading them whole.
#pragma once

#include <string>

namespace shardmat {

/// Size and checksum of the first and last bytes and of some places between, as "808 bytes, checksum 1f…"; files that differ
/// elsewhere only are not told apart. `name` may name an object of the file, or files of ranks, of which the first counts.
/// Empty if there is no such regular file, or if it cannot be read. Does not throw.
std::string file_digest(const std::string& name);

}  // namespace shardmat
