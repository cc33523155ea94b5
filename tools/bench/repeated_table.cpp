#include "tools/bench/repeated_table.h"

#include <algorithm>

#include "partition/generators/counter_random.h"

namespace shardmat::tools {
namespace {

constexpr std::size_t kTable = 1'000'003;  // prime, so that rows of X differ
constexpr std::uint64_t kSeed = 1, kTableStream = 17;

template <class T>
void repeat(const std::vector<double>& table, const Buffer& buffer, Stream& stream) {
  const std::vector<T> start(table.begin(), table.end());
  const std::size_t all = buffer.bytes() / sizeof(T);
  std::size_t done = std::min(all, start.size());
  copy_to_device(buffer.data(), start.data(), done * sizeof(T), stream);
  while (done < all) {
    const std::size_t more = std::min(done / start.size() * start.size(), all - done);
    copy_on_device(buffer.as<T>() + done, buffer.data(), more * sizeof(T), stream);
    done += more;
  }
}

}  // namespace

RepeatedTable::RepeatedTable(ValueType type) : type_(type), values_(kTable) {
  const CounterRandom random = CounterRandom(kSeed, kTableStream).of(0);
  for (std::size_t i = 0; i < kTable; ++i) values_[i] = rounded(type, random.symmetric(static_cast<std::int64_t>(i)));
}

void RepeatedTable::fill(const Buffer& buffer, Stream& stream) const {
  dispatch_operands(type_, [&](auto tag, auto) { repeat<typename decltype(tag)::type>(values_, buffer, stream); });
}

}  // namespace shardmat::tools
