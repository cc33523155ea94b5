#include "partition/compression/compression.h"

#ifdef SHARDMAT_HAVE_BZIP2

#include <bzlib.h>

#include <algorithm>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

class Bzip2 final : public Decompressor {
 public:
  Bzip2() { start(); }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2(const Bzip2&) = delete;
  Bzip2& operator=(const Bzip2&) = delete;

  void reset() override {
    BZ2_bzDecompressEnd(&stream_);
    start();
  }

  Step run(std::string_view in, char* out, std::size_t room) override {
    constexpr std::size_t kMost = 1 << 30;
    stream_.next_in = const_cast<char*>(in.data());
    stream_.avail_in = static_cast<unsigned>(std::min(in.size(), kMost));
    stream_.next_out = out;
    stream_.avail_out = static_cast<unsigned>(std::min(room, kMost));
    const unsigned had_in = stream_.avail_in, had_out = stream_.avail_out;
    const int status = BZ2_bzDecompress(&stream_);
    if (status == BZ_MEM_ERROR) throw Error(ErrorKind::resources, "there is no memory to decompress");
    if (status != BZ_OK && status != BZ_STREAM_END)
      throw DamagedData{status == BZ_DATA_ERROR_MAGIC ? "unexpected data" : "a checksum or a block is wrong"};
    return {had_in - stream_.avail_in, had_out - stream_.avail_out, status == BZ_STREAM_END};
  }

 private:
  void start() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK)
      throw Error(ErrorKind::resources, "libbz2 cannot start: out of memory");
  }

  bz_stream stream_{};
};

std::unique_ptr<Decompressor> make() { return std::make_unique<Bzip2>(); }

}  // namespace

std::unique_ptr<Decompressor> (*const make_bzip2)() = make;

}  // namespace shardmat

#else

namespace shardmat {
std::unique_ptr<Decompressor> (*const make_bzip2)() = nullptr;
}

#endif
