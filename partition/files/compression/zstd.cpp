#include "partition/files/compression/compression.h"

#ifdef SHARDMAT_HAVE_ZSTD

#include <zstd.h>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

/// Windows of more than 134 MB are refused, as the library does by itself.
class Zstd final : public Decompressor {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw Error(ErrorKind::resources, "libzstd cannot start: out of memory");
    reset();
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  void reset() override { ZSTD_initDStream(stream_); }

  Step run(std::string_view in, char* out, std::size_t room) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &to, &from);
    if (ZSTD_isError(status) != 0) throw DamagedData{ZSTD_getErrorName(status)};
    return {from.pos, to.pos, status == 0};
  }

 private:
  ZSTD_DStream* stream_;
};

std::unique_ptr<Decompressor> make() { return std::make_unique<Zstd>(); }

}  // namespace

std::unique_ptr<Decompressor> (*const make_zstd)() = make;

}  // namespace shardmat

#else

namespace shardmat {
std::unique_ptr<Decompressor> (*const make_zstd)() = nullptr;
}

#endif
