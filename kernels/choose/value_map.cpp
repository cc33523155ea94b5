#include "kernels/choose/value_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/choose/place_columns.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/upload.h"
#include "kernels/value_map_backends.h"

namespace shardmat {
namespace {

constexpr std::int64_t kAtLeast = 1 << 16;  ///< nonzeros a thread

const values::ValueMapBackend& backend_of([[maybe_unused]] Device device) {
#ifdef SHARDMAT_HAVE_CUDA
  if (device.backend == Backend::cuda) return values::cuda_backend;
#endif
  return values::host_backend;
}

/// Bits of the integers that a type holds exactly.
int digit_bits(ValueType type) {
  switch (type) {
    case ValueType::f16:
      return 11;
    case ValueType::bf16:
      return 8;
    case ValueType::f32:
      return 24;
    default:
      return 53;
  }
}

/// Entries are counted from 1, and the largest number of each width marks what is no number.
bool needs_wide_sources(std::int64_t largest_position) {
  return largest_position + 1 >= std::int64_t{std::numeric_limits<std::uint32_t>::max()};
}

std::int64_t places_of(const Buffer& array, ValueType type) {
  return static_cast<std::int64_t>(array.bytes() / size_of(type));
}

/// The largest position, or -1 without nonzeros. Throws Error(usage) for positions that cannot be.
std::int64_t largest_of(std::span<const std::int64_t> positions, std::int64_t nonzeros) {
  if (positions.empty()) return nonzeros - 1;
  if (std::ssize(positions) != nonzeros)
    throw Error(ErrorKind::usage, fmt::format("{} positions of values came for {} nonzeros; each nonzero needs one",
                                              positions.size(), nonzeros));
  std::atomic<std::int64_t> largest = -1, least = 0;
  parallel_ranges(nonzeros, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
    const auto [low, high] = std::minmax_element(positions.begin() + begin, positions.begin() + end);
    for (std::int64_t known = largest; known < *high && !largest.compare_exchange_weak(known, *high);) continue;
    for (std::int64_t known = least; *low < known && !least.compare_exchange_weak(known, *low);) continue;
  });
  if (least < 0) throw Error(ErrorKind::usage, fmt::format("a position of values is {}; they count from 0", least.load()));
  return largest;
}

/// Throws Error(internal) unless the storage can be one of the input's.
void require_matching(const Storage& storage, const ConversionInput& input) {
  const CsrView& matrix = input.matrix();
  if (storage.rows != matrix.rows || storage.cols != matrix.cols || storage.nnz != matrix.nnz() ||
      storage.type != input.type() || !(storage.device == input.stream().device()))
    throw Error(ErrorKind::internal, "a value map was asked for with a storage and the rows of another matrix");
}

/// Throws Error(resources) for what the map and the numbers on the host take.
void require_room(const Storage& storage, std::int64_t map_bytes) {
  const std::int64_t numbers = storage.nnz * static_cast<std::int64_t>(sizeof(double));
  constexpr const char* kWhat = "the map that new values are put in with";
  if (storage.device.backend == Backend::host) return require_host_memory(numbers + map_bytes, kWhat);
  require_host_memory(numbers, kWhat);
  require_memory(storage.device, map_bytes, kWhat);
}

}  // namespace

ValueMap::ValueMap(Storage& storage, ConversionInput& input, std::span<const std::int64_t> positions)
    : device_(storage.device), type_(storage.type), format_(storage.format) {
  require_matching(storage, input);
  format_to_update(storage.format);
  const std::int64_t largest = largest_of(positions, storage.nnz);
  entries_ = largest + 1;
  wide_ = needs_wide_sources(largest);
  require_room(storage, most_bytes(storage, largest));
  for (const Buffer* array : storage.value_arrays()) {
    const std::int64_t places = places_of(*array, type_);
    arrays_.push_back({places, Buffer(device_, static_cast<std::size_t>(places) * (wide_ ? 8 : 4))});
  }

  const ValueView values = input.matrix().values;
  const auto put_back = [&] {
    input.replace_values(values);
    format_to_update(storage.format).update(storage, input);
  };
  try {
    find_sources(storage, input, positions);
  } catch (...) {
    try {
      put_back();
    } catch (const Error&) {  // the first error says more
    }
    throw;
  }
  put_back();
  check_sources(storage.nnz, input.stream());
}

std::int64_t ValueMap::most_bytes(const Storage& storage, std::int64_t largest_position) {
  std::int64_t places = 0;
  for (const Buffer* array : storage.value_arrays()) places += places_of(*array, storage.type);
  return places * (needs_wide_sources(largest_position) ? 8 : 4);
}

/// Sends the entries' numbers through the format, digit by digit.
void ValueMap::find_sources(Storage& storage, ConversionInput& input, std::span<const std::int64_t> positions) {
  HostVector<double> digits(static_cast<std::size_t>(storage.nnz));
  const int bits = digit_bits(type_);
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int shift = 0; shift == 0 || (shift < 64 && entries_ >> shift != 0); shift += bits) {
    parallel_ranges(storage.nnz, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const auto number = static_cast<std::uint64_t>(positions.empty() ? k : positions[i]) + 1;
        digits[i] = static_cast<double>(number >> shift & mask);
      }
    });
    input.replace_values(digits);
    format_to_update(storage.format).update(storage, input);
    const auto arrays = storage.value_arrays();
    for (std::size_t a = 0; a < arrays.size(); ++a)
      backend_of(device_).add_digits(type_, arrays[a]->data(), {arrays_[a].sources.data(), arrays_[a].places, wide_}, shift,
                                     input.stream());
    input.stream().synchronize();
  }
}

/// Each nonzero must have been found once; what is in order need not be kept.
void ValueMap::check_sources(std::int64_t nonzeros, Stream& stream) {
  std::uint64_t filled = 0, beyond = 0;
  for (Array& array : arrays_) {
    const values::Counts counts =
        backend_of(device_).count({array.sources.data(), array.places, wide_}, static_cast<std::uint64_t>(entries_), stream);
    filled += counts.filled, beyond += counts.beyond;
    if (counts.out_of_place == 0) array.sources = Buffer();
  }
  if (beyond > 0 || filled != static_cast<std::uint64_t>(nonzeros))
    throw Error(ErrorKind::internal,
                fmt::format("format {} has {} places with values for {} nonzeros, {} of them wrong, so new values cannot be "
                            "put in by a map",
                            format_, filled, nonzeros, beyond));
}

void ValueMap::require_same(const Storage& storage) const {
  const auto arrays = storage.value_arrays();
  bool same =
      storage.format == format_ && storage.type == type_ && storage.device == device_ && arrays.size() == arrays_.size();
  for (std::size_t a = 0; same && a < arrays.size(); ++a) same = places_of(*arrays[a], type_) == arrays_[a].places;
  if (!same) throw Error(ErrorKind::internal, "new values came with the value map of another storage");
}

void ValueMap::update(Storage& storage, const void* values, std::int64_t count, ValueType values_type,
                      Stream& stream) const {
  require_same(storage);
  if (is_half(values_type))
    throw Error(ErrorKind::usage, fmt::format("new values must be f64 or f32, and are {}", name(values_type)));
  if (count < entries_)
    throw Error(ErrorKind::usage, fmt::format("new values need {} entries, but come with {}", entries_, count));
  const auto arrays = storage.value_arrays();
  for (std::size_t a = 0; a < arrays.size(); ++a)
    backend_of(device_).update({arrays_[a].sources.data(), arrays_[a].places, wide_},
                               {values, values_type, arrays[a]->data(), type_}, stream);
}

void ValueMap::write_values(const Storage& storage, double* to, Stream& stream) const {
  require_same(storage);
  const auto arrays = storage.value_arrays();
  for (std::size_t a = 0; a < arrays.size(); ++a)
    backend_of(device_).write_back({arrays_[a].sources.data(), arrays_[a].places, wide_}, arrays[a]->data(), type_, to,
                                   stream);
}

bool ValueMap::write_columns(const Storage& storage, std::int32_t* to, Stream& stream) const {
  require_same(storage);
  const std::optional<Buffer> columns = place_columns(storage, stream);
  if (!columns) return false;
  const auto* of_array = columns->as<std::int32_t>();
  for (const Array& array : arrays_) {
    backend_of(device_).put_back({array.sources.data(), array.places, wide_}, of_array, to, stream);
    of_array += array.places;
  }
  stream.synchronize();  // the columns of the places go
  return true;
}

HostVector<double> ValueMap::read(const Storage& storage, Stream& stream) const {
  require_same(storage);
  require_host_memory(8 * entries_, "the values of a stored matrix");
  HostVector<double> values(static_cast<std::size_t>(entries_));
  parallel_ranges(entries_, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
    std::fill(values.begin() + begin, values.begin() + end, 0.0);
  });
  const auto on_host = [&]<class E>(const Buffer& from, E) {
    HostVector<E> copy(from.bytes() / sizeof(E));
    copy_to_host(copy.data(), from.data(), from.bytes(), stream);
    return copy;
  };
  const auto arrays = storage.value_arrays();
  for (std::size_t a = 0; a < arrays.size(); ++a)
    dispatch_operands(type_, [&](auto tag, auto) {
      using T = typename decltype(tag)::type;
      values::dispatch_source(wide_, [&](auto source) {
        using Source = typename decltype(source)::type;
        const HostVector<T> held = on_host(*arrays[a], T());
        const HostVector<Source> sources = on_host(arrays_[a].sources, Source());
        parallel_ranges(std::ssize(held), kAtLeast, [&](std::int64_t begin, std::int64_t end) {
          for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
            const std::uint64_t entry = sources.empty() ? i + 1 : sources[i];
            if (entry != 0) values[entry - 1] = static_cast<double>(held[i]);
          }
        });
      });
    });
  return values;
}

HostVector<std::int64_t> ValueMap::places(Stream& stream) const {
  require_host_memory(8 * entries_, "the places of the values of a stored matrix");
  HostVector<std::int64_t> places(static_cast<std::size_t>(entries_));
  std::fill(places.begin(), places.end(), std::int64_t{-1});
  std::int64_t before = 0;
  for (const Array& array : arrays_) {
    values::dispatch_source(wide_, [&](auto source) {
      using Source = typename decltype(source)::type;
      HostVector<Source> sources(array.sources.bytes() / sizeof(Source));
      copy_to_host(sources.data(), array.sources.data(), array.sources.bytes(), stream);
      parallel_ranges(array.places, kAtLeast, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::uint64_t entry =
              sources.empty() ? static_cast<std::uint64_t>(i) + 1 : sources[static_cast<std::size_t>(i)];
          if (entry != 0) places[entry - 1] = before + i;
        }
      });
    });
    before += array.places;
  }
  return places;
}

std::int64_t ValueMap::bytes() const {
  std::int64_t bytes = 0;
  for (const Array& array : arrays_) bytes += static_cast<std::int64_t>(array.sources.bytes());
  return bytes;
}

ValuePicker::ValuePicker(std::span<const std::int64_t> positions, Stream& stream) : places_(std::ssize(positions)) {
  const std::int64_t largest = positions.empty() ? -1 : *std::max_element(positions.begin(), positions.end());
  wide_ = needs_wide_sources(largest);
  values::dispatch_source(wide_, [&](auto source) {
    using Source = typename decltype(source)::type;
    const std::int64_t bytes = places_ * static_cast<std::int64_t>(sizeof(Source));
    require_memory(stream.device(), bytes, "the places of the diagonal among the values");
    sources_ = upload<Source>(
        places_, stream, [&](std::int64_t i) { return static_cast<Source>(positions[static_cast<std::size_t>(i)] + 1); });
  });
}

void ValuePicker::pick(const void* values, ValueType values_type, void* places, ValueType type, Stream& stream) const {
  if (places_ == 0) return;
  backend_of(stream.device()).update({sources_.data(), places_, wide_}, {values, values_type, places, type}, stream);
}

std::optional<std::int64_t> first_not_finite(const void* values, std::int64_t count, ValueType values_type, Stream& stream) {
  const std::int64_t first = backend_of(stream.device()).first_not_finite(values, count, values_type, stream);
  return first == count ? std::nullopt : std::optional(first);
}

void require_values_in_range(ValueType type, const void* values, std::int64_t count, ValueType values_type,
                             std::string_view what, Stream& stream) {
  if (is_half(values_type))
    throw Error(ErrorKind::usage, fmt::format("{} must be f64 or f32, and are {}", what, name(values_type)));
  const double limit = least_out_of_range(type);
  if (limit >= least_out_of_range(values_type)) return;
  const std::int64_t first = backend_of(stream.device()).first_beyond(limit, values, count, values_type, stream);
  if (first == count) return;
  double value = 0;
  dispatch(values_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T entry = 0;
    copy_to_host(&entry, static_cast<const T*>(values) + first, sizeof entry, stream);
    value = static_cast<double>(entry);
  });
  refuse_out_of_range(type, first, value, what);
}

}  // namespace shardmat
