#include <zlib.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "partition/compression/compression.h"

namespace shardmat {
namespace {

class Gzip final : public Decompressor {
 public:
  Gzip() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error(ErrorKind::resources, "zlib cannot start: out of memory");
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void reset() override { inflateReset(&stream_); }

  Step run(std::string_view in, char* out, std::size_t room) override {
    constexpr std::size_t kMost = 1 << 30;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(std::min(in.size(), kMost));
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min(room, kMost));
    const uInt had_in = stream_.avail_in, had_out = stream_.avail_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw Error(ErrorKind::resources, "there is no memory to decompress");
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw DamagedData{stream_.msg != nullptr ? stream_.msg : "unexpected data"};
    return {had_in - stream_.avail_in, had_out - stream_.avail_out, status == Z_STREAM_END};
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<Decompressor> make_gzip() { return std::make_unique<Gzip>(); }

}  // namespace shardmat
