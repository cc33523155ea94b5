// What zlib, bzip2 and xz have in common: a stream with next_in, avail_in, next_out and avail_out. Library has
//
//   using Stream = …;
//   static bool start(Stream&);       for a new member; false without memory
//   static void end(Stream&);
//   static bool step(Stream&);        true at the end of a member; throws DamagedData, or no_memory()
//   static constexpr const char* kName
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/base/error.h"
#include "partition/files/compression/compression.h"

namespace shardmat {

[[noreturn]] inline void no_memory() { throw Error(ErrorKind::resources, "there is no memory to decompress"); }

template <class Library>
class StreamDecompressor final : public Decompressor {
 public:
  StreamDecompressor() { start(); }
  ~StreamDecompressor() override { Library::end(stream_); }
  StreamDecompressor(const StreamDecompressor&) = delete;
  StreamDecompressor& operator=(const StreamDecompressor&) = delete;

  void reset() override {
    Library::end(stream_);
    stream_ = {};
    start();
  }

  Step run(std::string_view in, char* out, std::size_t room) override {
    using In = std::remove_const_t<std::remove_pointer_t<decltype(stream_.next_in)>>;
    using Out = std::remove_pointer_t<decltype(stream_.next_out)>;
    using Count = decltype(stream_.avail_in);
    constexpr std::size_t kMost = 1 << 30;  // of 32-bit counters
    stream_.next_in = reinterpret_cast<In*>(const_cast<char*>(in.data()));
    stream_.next_out = reinterpret_cast<Out*>(out);
    const Count had_in = stream_.avail_in = static_cast<Count>(std::min(in.size(), kMost));
    const Count had_out = stream_.avail_out = static_cast<Count>(std::min(room, kMost));
    const bool ended = Library::step(stream_);
    return {had_in - stream_.avail_in, had_out - stream_.avail_out, ended};
  }

 private:
  void start() {
    if (!Library::start(stream_))
      throw Error(ErrorKind::resources, std::string(Library::kName) + " cannot start: out of memory");
  }

  typename Library::Stream stream_{};
};

template <class Library>
std::unique_ptr<Decompressor> make_stream_decompressor() {
  return std::make_unique<StreamDecompressor<Library>>();
}

}  // namespace shardmat
