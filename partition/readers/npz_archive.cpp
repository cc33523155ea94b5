#ifdef SHARDMAT_HAVE_LIBZIP

#include "partition/readers/npz_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlock = 1 << 15;  ///< elements converted at a time
/// Deflate cannot make data more than this many times smaller.
constexpr std::int64_t kBestCompression = 1032;

}  // namespace

NpzArchive::NpzArchive(const std::filesystem::path& path) : file_(path) {
  const int descriptor = ::fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0)
    throw Error(ErrorKind::resources, fmt::format("{}: it cannot be opened twice: {}", path.string(), std::strerror(errno)));
  int code = 0;
  zip_.reset(zip_fdopen(descriptor, 0, &code));  // which owns the descriptor then
  if (zip_) {
    require_distinct_names();
    return;
  }
  ::close(descriptor);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail(
      fmt::format("it cannot be read as a zip archive ({}); it is truncated or no .npz file, write it again with "
                  "scipy.sparse.save_npz",
                  reason));
}

void NpzArchive::require_distinct_names() const {
  std::set<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(get(), 0); ++i) {
    const char* name = zip_get_name(get(), static_cast<zip_uint64_t>(i), 0);
    if (name != nullptr && !names.insert(name).second)
      fail(fmt::format("it has two members with the name {}, and which one is meant is unknown; write it again",
                       shortened(name)));
  }
}

bool NpzArchive::has(const std::string& name) const { return zip_name_locate(get(), (name + ".npy").c_str(), 0) >= 0; }

void NpzArchive::fail(const std::string& what, const std::string& setting) const {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path().string(), what), setting);
}

NpzMember::NpzMember(const NpzArchive& archive, const std::string& name)
    : source_(fmt::format("{}({}.npy)", archive.path().string(), name)) {
  const std::string file = name + ".npy";
  zip_stat_t status;
  zip_stat_init(&status);
  if (zip_stat(archive.get(), file.c_str(), 0, &status) != 0)
    archive.fail(fmt::format("it has no member {}; write it with scipy.sparse.save_npz", file));
  size_ = static_cast<std::int64_t>(status.size);
  if (status.comp_size > static_cast<zip_uint64_t>(archive.file().size()) ||
      status.size > status.comp_size * kBestCompression + 1024)
    fail("the sizes in the archive contradict each other; it is damaged, write it again");
  file_.reset(zip_fopen(archive.get(), file.c_str(), 0));
  if (!file_) fail(fmt::format("it cannot be read ({}); write it again", zip_strerror(archive.get())));
  header_ = read_npy_header(source_, [this](void* to, std::size_t size) { read(to, size); });
  if (header_.data_offset + header_.count * header_.item_bytes != size_)
    fail(fmt::format("its header promises {} elements of {} bytes but the member has {} bytes; write it again",
                     header_.count, header_.item_bytes, size_ - header_.data_offset));
  left_ = header_.count;
}

void NpzMember::fail(const std::string& what) const { throw Error(ErrorKind::input, fmt::format("{}: {}", source_, what)); }

template <class T>
void NpzMember::next(T* out, std::int64_t count) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t block = std::min(kBlock, count - done);
    bytes_.resize(static_cast<std::size_t>(block * header_.item_bytes));
    read(bytes_.data(), bytes_.size());
    if constexpr (std::is_same_v<T, double>)
      npy_to_f64(source_, header_, bytes_.data(), static_cast<std::size_t>(block), out + done);
    else npy_to_int64(source_, header_, bytes_.data(), static_cast<std::size_t>(block), out + done);
    done += block;
  }
  left_ -= count;
  if (left_ == 0) require_end();
}

template void NpzMember::next(double*, std::int64_t);
template void NpzMember::next(std::int64_t*, std::int64_t);

std::string NpzMember::text() {
  if (header_.count != 1 || header_.item_bytes > 256 || (header_.kind != 'S' && header_.kind != 'U'))
    fail("it holds no string; write it with scipy.sparse.save_npz");
  std::string letters(static_cast<std::size_t>(header_.item_bytes), '\0');
  read(letters.data(), letters.size());
  letters.erase(std::remove(letters.begin(), letters.end(), '\0'),
                letters.end());  // padding, and UTF-32 of ASCII
  require_end();
  return letters;
}

void NpzMember::read(void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const zip_int64_t got = zip_fread(file_.get(), static_cast<char*>(to) + done, size - done);
    if (got <= 0) fail_read();
    done += static_cast<std::size_t>(got);
  }
}

void NpzMember::require_end() {
  char more;
  if (zip_fread(file_.get(), &more, 1) != 0) fail_read();
}

void NpzMember::fail_read() {
  const char* reason = zip_file_strerror(file_.get());
  fail(fmt::format("the archive is truncated or damaged ({}); copy or write it again", reason));
}

}  // namespace shardmat

#endif
