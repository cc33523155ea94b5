#include <algorithm>
#include <atomic>
#include <cmath>

#include "kernels/base/parallel.h"
#include "kernels/value_map_backends.h"

namespace shardmat::values {
namespace {

constexpr std::int64_t kAtLeast = 1 << 14;  ///< places a thread

void add_digits(ValueType type, const void* values, const Sources& sources, int shift, Stream&) {
  dispatch_operands(type, [&](auto tag, auto) {
    dispatch_source(sources.wide, [&](auto source_tag) {
      using Source = typename decltype(source_tag)::type;
      const auto* from = static_cast<const typename decltype(tag)::type*>(values);
      auto* to = static_cast<Source*>(sources.data);
      parallel_ranges(sources.count, kAtLeast, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = with_digit(to[i], static_cast<double>(from[i]), shift);
      });
    });
  });
}

Counts count(const Sources& sources, std::uint64_t entries, Stream&) {
  std::atomic<std::uint64_t> filled = 0, beyond = 0, out_of_place = 0;
  dispatch_source(sources.wide, [&](auto tag) {
    const auto* source = static_cast<const typename decltype(tag)::type*>(sources.data);
    parallel_ranges(sources.count, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
      Counts found;
      for (std::int64_t i = begin; i < end; ++i) {
        found.filled += source[i] != 0 ? 1 : 0;
        found.beyond += source[i] > entries ? 1 : 0;
        found.out_of_place += source[i] != static_cast<std::uint64_t>(i) + 1 ? 1 : 0;
      }
      filled += found.filled, beyond += found.beyond, out_of_place += found.out_of_place;
    });
  });
  return {filled, beyond, out_of_place};
}

template <class To, class From>
void put(const Sources& sources, const From* from, To* to) {
  const auto fill = [&](const auto& entry) {
    parallel_ranges(sources.count, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(entry(i));
    });
  };
  if (sources.data == nullptr) return fill([=](std::int64_t i) { return from[i]; });
  dispatch_source(sources.wide, [&](auto tag) {
    const auto* source = static_cast<const typename decltype(tag)::type*>(sources.data);
    fill([=](std::int64_t i) { return source[i] != 0 ? from[source[i] - 1] : From(0); });
  });
}

void update(const Sources& sources, const Update& update, Stream&) {
  dispatch_operands(update.to_type, [&](auto to, auto) {
    dispatch(update.from_type, [&](auto from) {
      put(sources, static_cast<const typename decltype(from)::type*>(update.from),
          static_cast<typename decltype(to)::type*>(update.to));
    });
  });
}

void write_back(const Sources& sources, const void* from, ValueType from_type, double* to, Stream&) {
  dispatch_operands(from_type, [&](auto tag, auto) {
    const auto* values = static_cast<const typename decltype(tag)::type*>(from);
    const auto write = [&](const auto& source_of) {
      parallel_ranges(sources.count, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          if (const std::uint64_t source = source_of(i); source != 0) to[source - 1] = static_cast<double>(values[i]);
      });
    };
    if (sources.data == nullptr) return write([](std::int64_t i) { return static_cast<std::uint64_t>(i) + 1; });
    dispatch_source(sources.wide, [&](auto source_tag) {
      const auto* source = static_cast<const typename decltype(source_tag)::type*>(sources.data);
      write([source](std::int64_t i) { return std::uint64_t{source[i]}; });
    });
  });
}

void put_back(const Sources& sources, const std::int32_t* of_places, std::int32_t* to, Stream&) {
  if (sources.data == nullptr) {
    std::copy(of_places, of_places + sources.count, to);
    return;
  }
  dispatch_source(sources.wide, [&](auto tag) {
    const auto* source = static_cast<const typename decltype(tag)::type*>(sources.data);
    parallel_ranges(sources.count, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (source[i] != 0) to[source[i] - 1] = of_places[i];
    });
  });
}

template <class Is>
std::int64_t first_that(const Is& is, const void* values, std::int64_t count, ValueType values_type) {
  std::atomic<std::int64_t> first = count;
  dispatch(values_type, [&](auto tag) {
    const auto* value = static_cast<const typename decltype(tag)::type*>(values);
    parallel_ranges(count, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t i = begin;
      while (i < end && !is(static_cast<double>(value[i]))) ++i;
      if (i == end) return;
      for (std::int64_t known = first; i < known && !first.compare_exchange_weak(known, i);) continue;
    });
  });
  return first;
}

std::int64_t first_beyond(double limit, const void* values, std::int64_t count, ValueType values_type, Stream&) {
  return first_that([limit](double value) { return std::isfinite(value) && std::abs(value) >= limit; }, values, count,
                    values_type);
}

std::int64_t first_not_finite(const void* values, std::int64_t count, ValueType values_type, Stream&) {
  return first_that([](double value) { return !std::isfinite(value); }, values, count, values_type);
}

}  // namespace

const ValueMapBackend host_backend{add_digits, count, update, write_back, put_back, first_beyond, first_not_finite};

}  // namespace shardmat::values
