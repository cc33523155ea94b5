#include "partition/files/compression/stream_decompressor.h"

#ifdef SHARDMAT_HAVE_BZIP2

#include <bzlib.h>

namespace shardmat {
namespace {

struct Bzip2 {
  using Stream = bz_stream;
  static constexpr const char* kName = "libbz2";
  static bool start(Stream& stream) { return BZ2_bzDecompressInit(&stream, 0, 0) == BZ_OK; }
  static void end(Stream& stream) { BZ2_bzDecompressEnd(&stream); }
  static bool step(Stream& stream) {
    const int status = BZ2_bzDecompress(&stream);
    if (status == BZ_MEM_ERROR) no_memory();
    if (status != BZ_OK && status != BZ_STREAM_END)
      throw DamagedData{status == BZ_DATA_ERROR_MAGIC ? "unexpected data" : "a checksum or a block is wrong"};
    return status == BZ_STREAM_END;
  }
};

}  // namespace

std::unique_ptr<Decompressor> (*const make_bzip2)() = make_stream_decompressor<Bzip2>;

}  // namespace shardmat

#else

namespace shardmat {
std::unique_ptr<Decompressor> (*const make_bzip2)() = nullptr;
}

#endif
