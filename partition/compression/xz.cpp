#include "partition/compression/compression.h"

#ifdef SHARDMAT_HAVE_XZ

#include <lzma.h>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

class Xz final : public Decompressor {
 public:
  Xz() { reset(); }
  ~Xz() override { lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;

  void reset() override {
    constexpr std::uint64_t kMostMemory = 256 << 20;  // xz -9 needs 65 MB
    if (lzma_stream_decoder(&stream_, kMostMemory, 0) != LZMA_OK)
      throw Error(ErrorKind::resources, "liblzma cannot start: out of memory");
  }

  Step run(std::string_view in, char* out, std::size_t room) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out);
    stream_.avail_out = room;
    const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
    if (status == LZMA_MEM_ERROR) throw Error(ErrorKind::resources, "there is no memory to decompress");
    if (status == LZMA_MEMLIMIT_ERROR)
      throw DamagedData{"it asks for more than 268 MB of memory; compress it with xz -9 or less"};
    if (status != LZMA_OK && status != LZMA_STREAM_END && status != LZMA_BUF_ERROR)
      throw DamagedData{status == LZMA_FORMAT_ERROR ? "unexpected data" : "a checksum or a block is wrong"};
    return {in.size() - stream_.avail_in, room - stream_.avail_out, status == LZMA_STREAM_END};
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

std::unique_ptr<Decompressor> make() { return std::make_unique<Xz>(); }

}  // namespace

std::unique_ptr<Decompressor> (*const make_xz)() = make;

}  // namespace shardmat

#else

namespace shardmat {
std::unique_ptr<Decompressor> (*const make_xz)() = nullptr;
}

#endif
