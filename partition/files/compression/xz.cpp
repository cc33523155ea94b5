#include "partition/files/compression/stream_decompressor.h"

#ifdef SHARDMAT_HAVE_XZ

#include <lzma.h>

namespace shardmat {
namespace {

struct Xz {
  using Stream = lzma_stream;
  static constexpr const char* kName = "liblzma";
  static bool start(Stream& stream) {
    constexpr std::uint64_t kMostMemory = 256 << 20;  // xz -9 needs 65 MB
    return lzma_stream_decoder(&stream, kMostMemory, 0) == LZMA_OK;
  }
  static void end(Stream& stream) { lzma_end(&stream); }
  static bool step(Stream& stream) {
    const lzma_ret status = lzma_code(&stream, LZMA_RUN);
    if (status == LZMA_MEM_ERROR) no_memory();
    if (status == LZMA_MEMLIMIT_ERROR)
      throw DamagedData{"it asks for more than 268 MB of memory; compress it with xz -9 or less"};
    if (status != LZMA_OK && status != LZMA_STREAM_END && status != LZMA_BUF_ERROR)
      throw DamagedData{status == LZMA_FORMAT_ERROR ? "unexpected data" : "a checksum or a block is wrong"};
    return status == LZMA_STREAM_END;
  }
};

}  // namespace

std::unique_ptr<Decompressor> (*const make_xz)() = make_stream_decompressor<Xz>;

}  // namespace shardmat

#else

namespace shardmat {
std::unique_ptr<Decompressor> (*const make_xz)() = nullptr;
}

#endif
