#include <zlib.h>

#include "partition/files/compression/stream_decompressor.h"

namespace shardmat {
namespace {

struct Zlib {
  using Stream = z_stream;
  static constexpr const char* kName = "zlib";
  static bool start(Stream& stream) { return inflateInit2(&stream, 15 + 16) == Z_OK; }  // 16: gzip
  static void end(Stream& stream) { inflateEnd(&stream); }
  static bool step(Stream& stream) {
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) no_memory();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw DamagedData{stream.msg != nullptr ? stream.msg : "unexpected data"};
    return status == Z_STREAM_END;
  }
};

}  // namespace

std::unique_ptr<Decompressor> (*const make_gzip)() = make_stream_decompressor<Zlib>;

}  // namespace shardmat
