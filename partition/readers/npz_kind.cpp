#include "partition/readers/npz_kind.h"

#ifdef SHARDMAT_HAVE_LIBZIP

#include "kernels/base/error.h"
#include "partition/readers/npz_archive.h"

namespace shardmat {

NpzKind kind_of_npz(const std::filesystem::path& path) {
  try {
    const NpzArchive archive(path);
    return archive.has("graph_ptr") ? NpzKind::graphs : archive.has("format") ? NpzKind::matrix : NpzKind::other;
  } catch (const Error&) {
    return NpzKind::other;
  }
}

}  // namespace shardmat

#else

namespace shardmat {

NpzKind kind_of_npz(const std::filesystem::path&) { return NpzKind::other; }

}  // namespace shardmat

#endif
