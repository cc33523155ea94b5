#include "kernels/bandwidth.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"

namespace shardmat {

double measure_copy_bandwidth(Stream& stream, std::size_t bytes) {
  const bool host = stream.device().backend == Backend::host;
  const auto free = static_cast<std::size_t>(available_memory(stream.device()));
  bytes = std::min({bytes, free / 4, host ? std::size_t{1} << 26 : bytes});
  if (bytes < (std::size_t{1} << 20)) return 0;
  const Buffer from(stream.device(), bytes), to(stream.device(), bytes);
  fill_bytes(from.data(), 1, bytes, stream);
  fill_bytes(to.data(), 0, bytes, stream);
  double best = 0;
  for (int repetition = 0; repetition < 6; ++repetition) {
    Event start(stream.device()), end(stream.device());
    start.record(stream);
    if (host)
      parallel_ranges(static_cast<std::int64_t>(bytes), 1 << 20, [&](std::int64_t begin, std::int64_t last) {
        std::memcpy(to.as<char>() + begin, from.as<char>() + begin, static_cast<std::size_t>(last - begin));
      });
    else copy_on_device(to.data(), from.data(), bytes, stream);
    end.record(stream);
    stream.synchronize();
    best = std::max(best, 2.0 * static_cast<double>(bytes) / end.seconds_since(start));
  }
  return best;
}

}  // namespace shardmat
