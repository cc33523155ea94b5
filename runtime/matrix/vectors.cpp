#include "runtime/matrix/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {
namespace {

constexpr std::int64_t kWindow = std::int64_t{1} << 22;  // entries of a vector file held at a time

class Generated final : public VectorSource {
 public:
  Generated(std::string name, std::int64_t columns, std::function<double(std::int64_t)> value)
      : name_(std::move(name)), columns_(columns), value_(std::move(value)) {}
  std::string name() const override { return name_; }
  std::int64_t columns() const override { return columns_; }
  HostVector<double> read(std::int64_t begin, std::int64_t end) const override {
    HostVector<double> values(static_cast<std::size_t>((end - begin) * columns_));
    parallel_ranges(std::ssize(values), 1 << 14, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) values[static_cast<std::size_t>(i)] = value_(begin * columns_ + i);
    });
    return values;
  }

 private:
  std::string name_;
  std::int64_t columns_;
  std::function<double(std::int64_t)> value_;
};

class Constant final : public VectorSource {
 public:
  Constant(std::string name, std::int64_t columns, double value)
      : name_(std::move(name)), columns_(columns), value_(value) {}
  std::string name() const override { return name_; }
  std::int64_t columns() const override { return columns_; }
  std::optional<double> constant() const override { return value_; }
  HostVector<double> read(std::int64_t begin, std::int64_t end) const override {
    HostVector<double> values(static_cast<std::size_t>((end - begin) * columns_));
    std::fill(values.begin(), values.end(), value_);
    return values;
  }

 private:
  std::string name_;
  std::int64_t columns_;
  double value_;
};

class FromFile final : public VectorSource {
 public:
  FromFile(const std::string& path, const std::string& what, std::int64_t size, std::int64_t columns)
      : path_(path), columns_(columns), file_(path, what, columns) {
    if (file_.size() != size)
      throw Error(ErrorKind::input, fmt::format("{}: {} has {} {}, but this matrix needs {}", path, what, file_.size(),
                                                columns == 1 ? "entries" : "rows", size));
  }
  std::string name() const override { return path_; }
  std::int64_t columns() const override { return columns_; }
  HostVector<double> read(std::int64_t begin, std::int64_t end) const override {
    HostVector<double> values = file_.read(begin, end);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        throw Error(ErrorKind::input, fmt::format("{}: entry {} is {}; vectors must be finite", path_,
                                                  begin * columns_ + static_cast<std::int64_t>(i), values[i]));
    return values;
  }

 private:
  std::string path_;
  std::int64_t columns_;
  VectorFile file_;
};

/// Throws Error(input) for what is neither the name of a file that is there nor looks like one.
void refuse_word(const std::string& text) {
  std::error_code ignored;
  if (text.empty() || text.find_first_of("./:") != std::string::npos || std::filesystem::exists(text, ignored) ||
      vector_format_of(text) != nullptr)
    return;
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string near = nearest(lower, {"ones", "zeros", "random"});
  throw Error(ErrorKind::input,
              fmt::format("{}: there is no such file; name a vector's file, or write ones, zeros or random{}", text,
                          near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

/// SplitMix64 (Steele, Lea, Flood 2014) of a counter, as a uniform number in [-1, 1).
double random_value(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(index) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

}  // namespace

std::unique_ptr<VectorSource> open_vector(const std::string& text, const std::string& what, std::int64_t size,
                                          std::uint64_t seed, std::int64_t columns) {
  if (text == "ones" || text == "zeros") return std::make_unique<Constant>(text, columns, text == "ones" ? 1.0 : 0.0);
  if (text == "random")
    return std::make_unique<Generated>(fmt::format("random, seed {}", seed), columns,
                                       [seed](std::int64_t i) { return random_value(seed, i); });
  refuse_word(text);
  return std::make_unique<FromFile>(text, what, size, columns);
}

namespace {

/// Positions in `indices`, sorted by index.
std::vector<std::int64_t> by_index(std::span<const std::int64_t> indices) {
  std::vector<std::int64_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (std::is_sorted(indices.begin(), indices.end())) return order;
  const auto [least, most] = std::minmax_element(indices.begin(), indices.end());
  const std::int64_t first = *least, count = *most - first + 1;
  if (count <= 2 * std::ssize(indices)) {  // most rows of a range, as a rank has them: each goes to its place
    constexpr std::int64_t kNone = -1;
    std::vector<std::int64_t> position(static_cast<std::size_t>(count), kNone);
    bool differ = true;
    for (std::size_t i = 0; i < indices.size(); ++i)
      differ =
          std::exchange(position[static_cast<std::size_t>(indices[i] - first)], static_cast<std::int64_t>(i)) == kNone &&
          differ;
    if (differ) {
      std::copy_if(position.begin(), position.end(), order.begin(), [](std::int64_t i) { return i != kNone; });
      return order;
    }
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return indices[static_cast<std::size_t>(a)] < indices[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace

HostVector<double> collect(const VectorSource& source, std::span<const std::int64_t> indices) {
  const auto columns = static_cast<std::size_t>(source.columns());
  const std::int64_t rows_of_window = std::max<std::int64_t>(1, kWindow / source.columns());
  HostVector<double> values(indices.size() * columns);
  const std::vector<std::int64_t> order = by_index(indices);
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t begin = indices[static_cast<std::size_t>(order[i])];
    std::size_t end = i;
    while (end < order.size() && indices[static_cast<std::size_t>(order[end])] < begin + rows_of_window) ++end;
    const HostVector<double> window = source.read(begin, indices[static_cast<std::size_t>(order[end - 1])] + 1);
    parallel_ranges(static_cast<std::int64_t>(end - i), 1 << 14, [&](std::int64_t first, std::int64_t last) {
      for (auto k = i + static_cast<std::size_t>(first); k < i + static_cast<std::size_t>(last); ++k) {
        const auto position = static_cast<std::size_t>(order[k]);
        std::copy_n(
            window.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(indices[position] - begin) * columns),
            columns, values.begin() + static_cast<std::ptrdiff_t>(position * columns));
      }
    });
    i = end;
  }
  return values;
}

void to_device(void* device_memory, std::span<const double> values, ValueType type, Stream& stream) {
  dispatch_operands(type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      copy_to_device(device_memory, values.data(), values.size() * sizeof(T), stream);
    } else {
      HostVector<T> converted(values.size());
      parallel_ranges(std::ssize(values), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
        std::transform(values.begin() + begin, values.begin() + end, converted.begin() + begin,
                       [](double value) { return static_cast<T>(value); });
      });
      copy_to_device(device_memory, converted.data(), converted.size() * sizeof(T), stream);
    }
  });
}

HostVector<double> to_host(const void* device_memory, std::int64_t count, ValueType type, Stream& stream) {
  return dispatch_operands(type, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    require_host_memory(count * static_cast<std::int64_t>(sizeof(T) + sizeof(double)), "a vector on the host");
    HostVector<T> values(static_cast<std::size_t>(count));
    copy_to_host(values.data(), device_memory, values.size() * sizeof(T), stream);
    if constexpr (std::is_same_v<T, double>) {
      return values;
    } else {
      HostVector<double> converted(values.size());
      parallel_ranges(std::ssize(values), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
        std::transform(values.begin() + begin, values.begin() + end, converted.begin() + begin,
                       [](T value) { return static_cast<double>(value); });
      });
      return converted;
    }
  });
}

namespace {

constexpr int kIndexTag = 1, kValueTag = 2;

/// What one rank has of a window: indices and their values, ascending.
struct Piece {
  std::vector<std::int64_t> indices;
  std::vector<double> values;
};

/// REQUIRES: the vectors of `piece` have the capacity.
void receive_piece(Communicator& communicator, int from, std::int64_t count, std::int64_t columns, Piece& piece) {
  piece.indices.resize(static_cast<std::size_t>(count));
  piece.values.resize(static_cast<std::size_t>(count * columns));
  communicator.receive(piece.indices.data(), piece.indices.size() * sizeof(std::int64_t), from, kIndexTag);
  communicator.receive(piece.values.data(), piece.values.size() * sizeof(double), from, kValueTag);
}

}  // namespace

void write_vector(const std::string& path, const std::string& dataset, std::int64_t size, ValueType type,
                  std::span<const std::int64_t> indices, std::span<const double> values, Communicator& communicator,
                  std::int64_t columns, std::int64_t files) {
  const bool writer_rank = communicator.rank() == 0;
  const std::int64_t rows_of_window = std::max<std::int64_t>(1, kWindow / columns);
  std::vector<std::int64_t> order;
  HostVector<double> room;
  Piece received;
  std::optional<VectorWriter> writer;
  communicator.run_agreed([&] {
    order = by_index(indices);
    if (writer_rank) room.resize(static_cast<std::size_t>(std::min(size, rows_of_window) * columns));
    if (writer_rank) writer.emplace(path, dataset, size, type == ValueType::f32, columns, files);
  });
  std::size_t next = 0;
  const auto row = [&](auto values_of, std::int64_t i) {
    return values_of.begin() + static_cast<std::ptrdiff_t>(i * columns);
  };
  for (std::int64_t begin = 0; begin < size; begin += rows_of_window) {
    const std::int64_t end = std::min(size, begin + rows_of_window);
    Piece mine;
    communicator.run_agreed([&] {
      for (; next < order.size() && indices[static_cast<std::size_t>(order[next])] < end; ++next) {
        const auto position = static_cast<std::size_t>(order[next]);
        mine.indices.push_back(indices[position]);
        const auto from = row(values, order[next]);
        mine.values.insert(mine.values.end(), from, from + static_cast<std::ptrdiff_t>(columns));
      }
    });
    const auto counts = communicator.all_gather(static_cast<std::int64_t>(mine.indices.size()));
    communicator.run_agreed([&] {
      if (!writer_rank) return;
      const auto most = static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end()));
      received.indices.reserve(most);
      received.values.reserve(most * static_cast<std::size_t>(columns));
    });
    const std::span<double> window(room.data(), writer_rank ? static_cast<std::size_t>((end - begin) * columns) : 0);
    const auto place = [&](const Piece& piece) {
      for (std::size_t k = 0; k < piece.indices.size(); ++k)
        std::copy_n(row(std::span(piece.values), static_cast<std::int64_t>(k)), columns,
                    row(window, piece.indices[k] - begin));
    };
    if (writer_rank) {
      place(mine);
      for (int rank = 1; rank < communicator.size(); ++rank)
        if (const std::int64_t count = counts[static_cast<std::size_t>(rank)]; count > 0) {
          receive_piece(communicator, rank, count, columns, received);
          place(received);
        }
    } else if (!mine.indices.empty()) {
      communicator.send(mine.indices.data(), mine.indices.size() * sizeof(std::int64_t), 0, kIndexTag);
      communicator.send(mine.values.data(), mine.values.size() * sizeof(double), 0, kValueTag);
    }
    communicator.run_agreed([&] {
      if (writer) writer->append(window.data(), end - begin);
    });
  }
  communicator.run_agreed([&] {
    if (writer) writer->finish();
  });
}

}  // namespace shardmat
