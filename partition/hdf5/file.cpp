#include "partition/hdf5/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/files/input_file.h"
#include "partition/hdf5/describe.h"
#include "partition/hdf5/environment.h"
#include "partition/hdf5/filters.h"
#include "partition/hdf5/numbers.h"
#include "partition/hdf5/own_description.h"

namespace shardmat {
namespace {

using Kind = Hdf5Object::Kind;
using Layout = Hdf5Object::Layout;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPieceBytes = 1 << 20;         ///< converted at a time by a thread
constexpr std::int64_t kMostChunkBytes = 0xffffffff;  ///< that HDF5 allows

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", place, what));
}

[[noreturn]] void fail_damaged(const std::string& place, const std::string& what) {
  fail(place, what + "; the file is damaged or was cut off: copy or make it again");
}

/// The product of sizes from 0; the largest number if it is larger.
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0) return 0;
    result = result > kMost / size ? kMost : result * size;
  }
  return result;
}

std::int64_t times(std::int64_t a, std::int64_t b) { return b != 0 && a > kMost / b ? kMost : a * b; }

}  // namespace

/// An open file, what is in it, and the files that it leads to.
struct Hdf5Dataset::Opened {
  explicit Opened(const std::filesystem::path& path) : file(path) {}

  InputFile file;
  bool own = false;  ///< `description` came from the file itself
  Hdf5Description description;
  std::map<std::string, InputFile, std::less<>> others;

  const InputFile& named(const std::string& name) const { return name.empty() ? file : others.at(name); }
};

/// A chunk whose filters are undone.
struct Hdf5Dataset::Decoded {
  std::mutex mutex;
  std::int64_t index = -1;
  std::shared_ptr<const std::string> bytes;
};

namespace {

using Files = std::map<std::string, InputFile, std::less<>>;

/// Checks that the numbers of a dataset are all in the file, so that what follows can rely on it.
class DatasetCheck {
 public:
  DatasetCheck(const Hdf5Object& object, const InputFile& file, const Files& others, const std::string& place)
      : object_(object), file_(file), others_(others), place_(place) {}

  void run() const {
    for (const std::int64_t size : object_.shape)
      if (size < 0) fail_damaged(place_, "its shape is out of range");
    if (object_.shape.size() > 2)
      fail(place_, fmt::format("it has {} dimensions; one or two are read", object_.shape.size()));
    if (object_.number.kind == Hdf5Number::Kind::other) return;
    const int bytes = object_.number.bytes;
    const int least = object_.number.kind == Hdf5Number::Kind::floating_point ? 2 : 1;
    if (bytes < least || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
      fail_damaged(place_, "its type is out of range");
    if (product(object_.shape) == 0) return;
    const std::int64_t wanted = times(product(object_.shape), bytes);
    switch (object_.layout) {
      case Layout::contiguous:
      case Layout::external:
        return check_extents(wanted);
      case Layout::compact:
        if (static_cast<std::int64_t>(object_.data.size()) != wanted) fail_size(wanted, std::ssize(object_.data));
        return;
      case Layout::chunked:
        return check_chunks();
      case Layout::virtual_dataset:
        return check_parts();
    }
  }

 private:
  [[noreturn]] void fail_size(std::int64_t wanted, std::int64_t stored) const {
    fail_damaged(place_, fmt::format("its shape and type want {} bytes but {} are stored", wanted, stored));
  }

  [[noreturn]] void fail_unwritten(const std::string& what) const {
    fail(place_, what + "; fill values are not read, so write all of it, e.g. in h5py f['NAME'][...] = f['NAME'][:]");
  }

  std::int64_t size_of(const std::string& file) const {
    return file.empty() ? file_.size() : others_.find(file)->second.size();
  }

  void require_inside(const std::string& file, std::int64_t offset, std::int64_t bytes, const std::string& what) const {
    const std::int64_t size = size_of(file);
    if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset)
      fail_damaged(place_, fmt::format("{} at byte {} with {} bytes reaches beyond the end of the file, which has {}", what,
                                       offset, bytes, size));
  }

  void check_extents(std::int64_t wanted) const {
    std::int64_t stored = 0;
    for (const Hdf5Extent& extent : object_.extents) {
      const std::string& file = extent.file.empty() ? object_.file : extent.file;
      const std::int64_t left = wanted - stored;
      const std::int64_t bytes = object_.layout == Layout::external ? std::min(extent.bytes, left) : extent.bytes;
      require_inside(file, extent.offset, bytes, "its data");
      stored += bytes;
      if (stored >= wanted) break;
    }
    if (object_.extents.empty()) fail_unwritten("it was never written");
    if (stored < wanted) fail_size(wanted, stored);
  }

  /// Parts must follow one another without gaps, in any order of the list.
  void check_parts() const {
    std::map<std::int64_t, std::int64_t> rows;
    for (const Hdf5Part& part : object_.parts) {
      const Hdf5Object& source = part.source;
      if (source.kind != Kind::dataset || !source.located || source.layout == Layout::virtual_dataset ||
          source.number.kind == Hdf5Number::Kind::other || source.shape.size() != object_.shape.size() ||
          !std::equal(source.shape.begin() + 1, source.shape.end(), object_.shape.begin() + 1) || part.rows < 0 ||
          part.source_begin < 0 || part.rows > source.shape[0] || part.source_begin > source.shape[0] - part.rows)
        fail(place_,
             fmt::format("its rows from {} on are no rows of {} in {}", part.begin, part.target_object, part.target_file));
      DatasetCheck(source, file_, others_, place_).run();
      rows[part.begin] = part.rows;
    }
    std::int64_t next = 0;
    for (const auto& [begin, count] : rows) {
      if (begin != next)
        fail(place_, fmt::format("it is a virtual dataset whose row {} comes from nowhere, or from two places", next));
      next += count;
    }
    if (next != object_.shape[0] || rows.size() != object_.parts.size())
      fail(place_, fmt::format("it is a virtual dataset whose row {} comes from nowhere, or from two places", next));
  }

  void check_chunks() const {
    require_known_filters(object_.filters, place_);
    const auto& [shape, chunk] = std::pair(object_.shape, object_.chunk);
    if (chunk.size() != shape.size() || shape.empty()) fail_damaged(place_, "its chunks have other dimensions than it");
    std::vector<std::int64_t> grid;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (chunk[d] <= 0) fail_damaged(place_, "a chunk has no extent");
      grid.push_back((shape[d] - 1) / chunk[d] + 1);
    }
    const std::int64_t bytes = times(product(chunk), object_.number.bytes);
    if (bytes > kMostChunkBytes) fail_damaged(place_, fmt::format("a chunk of {} bytes is out of range", bytes));
    if (product(grid) != std::ssize(object_.chunks))
      fail_damaged(place_, fmt::format("it has {} chunks in place of {}", object_.chunks.size(), product(grid)));
    std::int64_t stored = 0;
    for (std::size_t i = 0; i < object_.chunks.size(); ++i) {
      check_chunk(i, bytes);
      stored += object_.chunks[i].bytes;
      if (stored > size_of(object_.file)) fail_damaged(place_, "its chunks lie over each other");
    }
  }

  void check_chunk(std::size_t i, std::int64_t bytes) const {
    const Hdf5Chunk& chunk = object_.chunks[i];
    const std::string name = fmt::format("chunk {}", i);
    if (chunk.offset < 0) fail_unwritten(name + " was never written");
    if (chunk.mask != 0)
      fail(place_, fmt::format("{} leaves out filters (mask {}), which is not read; rewrite the file with h5repack -f NONE, "
                               "or copy it again",
                               name, chunk.mask));
    require_inside(object_.file, chunk.offset, chunk.bytes, name);
    if (chunk.bytes > kMostChunkBytes) fail_damaged(place_, name + " is out of range");
    if (object_.filters.empty() ? chunk.bytes != bytes : most_filtered_bytes(object_.filters, chunk.bytes) < bytes)
      fail_damaged(place_, fmt::format("{} has {} bytes stored, too few for its {}", name, chunk.bytes, bytes));
  }

  const Hdf5Object& object_;
  const InputFile& file_;
  const Files& others_;
  const std::string& place_;
};

}  // namespace

const std::vector<std::int64_t>& Hdf5Dataset::shape() const {
  static const std::vector<std::int64_t> kNone;
  return object_ == nullptr ? kNone : object_->shape;
}

Hdf5Type Hdf5Dataset::type() const {
  const Hdf5Number& number = object_->number;
  if (number.kind == Hdf5Number::Kind::other) return Hdf5Type::other;
  if (stored_as<std::int32_t>(number)) return Hdf5Type::i32;
  if (stored_as<std::int64_t>(number)) return Hdf5Type::i64;
  if (stored_as<std::uint64_t>(number)) return Hdf5Type::u64;
  if (stored_as<float>(number)) return Hdf5Type::f32;
  if (stored_as<double>(number)) return Hdf5Type::f64;
  return number.kind == Hdf5Number::Kind::floating_point ? Hdf5Type::other_float : Hdf5Type::other_integer;
}

bool Hdf5Dataset::contiguous() const { return object_->layout == Layout::contiguous && object_->extents.size() <= 1; }

template <class T>
void Hdf5Dataset::read(std::int64_t begin, std::int64_t count, T* out) const {
  if (begin < 0 || count < 0 || begin > size() - count)
    throw Error(ErrorKind::internal,
                fmt::format("{}: entries [{}, {}) of {} asked for", place_, begin, begin + count, size()));
  if (type() == Hdf5Type::other) fail(place_, fmt::format("it holds {}, not numbers", object_->number.name));
  const std::int64_t width = object_->shape.size() < 2 ? 1 : object_->shape[1];
  if (count == 0 || width == 0) return;
  switch (object_->layout) {
    case Layout::compact:
      return convert_numbers(
          object_->number,
          reinterpret_cast<const unsigned char*>(object_->data.data()) + begin * width * object_->number.bytes,
          count * width, out, place_, begin * width);
    case Layout::chunked:
      return read_chunks(begin, count, out);
    case Layout::virtual_dataset:
      return read_parts(begin, count, out);
    default:
      return read_extents(begin * width, count * width, out);
  }
}

/// Numbers [first, first + count) of an array that lies in one stretch, or in several files.
template <class T>
void Hdf5Dataset::read_extents(std::int64_t first, std::int64_t count, T* out) const {
  const std::int64_t bytes = object_->number.bytes;
  const auto read_bytes = [&](std::int64_t begin, std::int64_t size, unsigned char* to) {
    for (const Hdf5Extent& extent : object_->extents) {
      if (size == 0) break;
      if (begin >= extent.bytes) {
        begin -= extent.bytes;
        continue;
      }
      const std::int64_t now = std::min(size, extent.bytes - begin);
      file_->named(extent.file.empty() ? object_->file : extent.file).read(to, extent.offset + begin, now);
      to += now, size -= now, begin = 0;
    }
  };
  if (stored_as<T>(object_->number)) return read_bytes(first * bytes, count * bytes, reinterpret_cast<unsigned char*>(out));
  parallel_ranges(count, kPieceBytes / bytes, [&](std::int64_t lo, std::int64_t hi) {
    std::vector<unsigned char> stored(static_cast<std::size_t>(std::min(hi - lo, kPieceBytes / bytes) * bytes));
    for (std::int64_t done = lo; done < hi; done += kPieceBytes / bytes) {
      const std::int64_t now = std::min(hi - done, kPieceBytes / bytes);
      read_bytes((first + done) * bytes, now * bytes, stored.data());
      convert_numbers(object_->number, stored.data(), now, out + done, place_, first + done);
    }
  });
}

/// Rows [begin, begin + count) of a virtual dataset.
template <class T>
void Hdf5Dataset::read_parts(std::int64_t begin, std::int64_t count, T* out) const {
  const std::int64_t width = object_->shape.size() < 2 ? 1 : object_->shape[1];
  for (const Hdf5Part& part : object_->parts) {
    const std::int64_t first = std::max(begin, part.begin), last = std::min(begin + count, part.begin + part.rows);
    if (first >= last) continue;
    Hdf5Dataset source;
    source.file_ = file_;
    source.object_ = &part.source;
    source.place_ = place_;
    source.read(part.source_begin + first - part.begin, last - first, out + (first - begin) * width);
  }
}

/// The chunk with its filters undone, which then has `bytes`.
std::shared_ptr<const std::string> Hdf5Dataset::decoded_chunk(std::int64_t index, std::int64_t bytes) const {
  const bool large = decoded_ != nullptr && bytes > kPieceBytes;
  if (large) {
    const std::lock_guard lock(decoded_->mutex);
    if (decoded_->index == index) return decoded_->bytes;
  }
  const Hdf5Chunk& chunk = object_->chunks[static_cast<std::size_t>(index)];
  auto data = std::make_shared<std::string>(static_cast<std::size_t>(chunk.bytes), '\0');
  file_->named(object_->file).read(data->data(), chunk.offset, chunk.bytes);
  undo_filters(object_->filters, *data, bytes, object_->number.bytes, fmt::format("{}: chunk {}", place_, index));
  if (large) {
    const std::lock_guard lock(decoded_->mutex);
    decoded_->index = index;
    decoded_->bytes = data;
  }
  return data;
}

/// Rows [begin, begin + count) of an array in chunks; a chunk is read and decoded by one thread.
template <class T>
void Hdf5Dataset::read_chunks(std::int64_t begin, std::int64_t count, T* out) const {
  const Hdf5Object& object = *object_;
  const std::int64_t bytes = object.number.bytes, end = begin + count;
  const std::int64_t width = object.shape.size() < 2 ? 1 : object.shape[1];
  const std::int64_t chunk_rows = object.chunk[0], chunk_width = object.shape.size() < 2 ? 1 : object.chunk[1];
  const std::int64_t across = (width - 1) / chunk_width + 1;
  const std::int64_t first = begin / chunk_rows, last = (end - 1) / chunk_rows + 1;
  const std::int64_t chunk_bytes = chunk_rows * chunk_width * bytes;
  if (chunk_bytes > kPieceBytes)
    require_host_memory(4 * chunk_bytes * std::min<std::int64_t>(thread_count(), (last - first) * across), place_.c_str());
  parallel_tasks((last - first) * across, [&](std::int64_t task) {
    const std::int64_t row = first + task / across, column = task % across, index = row * across + column;
    const std::shared_ptr<const std::string> stored = decoded_chunk(index, chunk_bytes);
    const std::int64_t j = column * chunk_width, columns = std::min(chunk_width, width - j);
    for (std::int64_t i = std::max(begin, row * chunk_rows); i < std::min(end, (row + 1) * chunk_rows); ++i)
      convert_numbers(object.number,
                      reinterpret_cast<const unsigned char*>(stored->data()) + (i - row * chunk_rows) * chunk_width * bytes,
                      columns, out + (i - begin) * width + j, place_, i * width + j);
  });
}

Hdf5File Hdf5File::open(const std::filesystem::path& path, const std::vector<std::string>& objects) {
  auto opened = std::make_shared<Hdf5Dataset::Opened>(path);
  if (auto own = own_description(opened->file)) {
    opened->own = true;
    opened->description = std::move(*own);
  } else {
    opened->description = describe_hdf5(opened->file, objects);
    if (opened->description.file_bytes != opened->file.size())
      fail(path.string(), fmt::format("it has {} bytes here but {} where it was looked at first; are there different files "
                                      "of this name on the hosts?",
                                      opened->file.size(), opened->description.file_bytes));
  }
  const bool follow = !opened->own && hdf5_links_are_followed();
  for (const auto& [name, object] : opened->description.objects) {
    const auto other_file = [&, &name = name](const std::string& other, bool wanted) {
      if (other.empty() || (wanted && !follow)) return;  // refused where it is asked for
      if (!follow) fail_damaged(fmt::format("{}: {}", path.string(), name), "it names another file");
      opened->others.try_emplace(other, other);
    };
    const auto all_of = [&](const Hdf5Object& one) {
      other_file(one.file, false);
      for (const Hdf5Extent& extent : one.extents) other_file(extent.file, one.layout == Layout::external);
    };
    all_of(object);
    for (const Hdf5Part& part : object.parts) all_of(part.source);
  }
  Hdf5File file;
  file.file_ = std::move(opened);
  return file;
}

const std::string& Hdf5File::path() const { return file_->file.path().native(); }

std::int64_t Hdf5File::bytes() const { return file_->file.size(); }

bool Hdf5File::has(const std::string& name) const {
  const auto& objects = file_->description.objects;
  if (objects.count(name) > 0) return true;
  const std::size_t slash = name.rfind('/');
  const auto parent = objects.find(slash == 0 ? "/" : name.substr(0, slash));
  if (parent == objects.end()) return false;
  const auto& names = parent->second.children;
  return std::find(names.begin(), names.end(), name.substr(slash + 1)) != names.end();
}

std::vector<std::string> Hdf5File::children(const std::string& group) const {
  const auto at = file_->description.objects.find(group);
  if (at == file_->description.objects.end() || at->second.kind != Kind::group)
    fail(fmt::format("{}: group {}", path(), group), "there is no such group");
  return at->second.children;
}

Hdf5Dataset Hdf5File::dataset(const std::string& name) const {
  Hdf5Dataset result;
  result.place_ = fmt::format("{}: dataset {}", path(), name);
  const auto at = file_->description.objects.find(name);
  if (at == file_->description.objects.end()) {
    if (has(name)) fail(result.place_, "it is a link that leads nowhere, or the file is damaged; copy or write it again");
    throw Error(ErrorKind::input, fmt::format("{} is missing", result.place_));
  }
  const Hdf5Object& object = at->second;
  const char* const remedy =
      "which is not followed, as it could be any file of this machine; copy the data into the file, or set "
      "SHARDMAT_HDF5_LINKS=follow if you trust it";
  if (object.kind == Kind::external_link)
    fail(result.place_, object.target_file.empty() ? "it is a link of a kind that is not known"
                                                   : fmt::format("it is a link to {} of another file, {}, {}",
                                                                 object.target_object, object.target_file, remedy));
  if (object.kind != Kind::dataset || !object.located) fail(result.place_, "it is no dataset");
  if (object.layout == Layout::virtual_dataset && object.parts.empty())
    fail(result.place_,
         "it is a virtual dataset of other parts than whole rows, which is not read; write its data into one "
         "file, e.g. with h5py");
  if (object.layout == Layout::virtual_dataset && (file_->own || !hdf5_links_are_followed()))
    fail(result.place_,
         fmt::format("it is a virtual dataset of rows in another file, {}, {}", object.parts.front().target_file, remedy));
  if (object.layout == Layout::external && (file_->own || !hdf5_links_are_followed()))
    fail(result.place_, fmt::format("its data lies in another file, {}, {}",
                                    object.extents.empty() ? "" : object.extents.front().file, remedy));
  DatasetCheck(object, file_->file, file_->others, result.place_).run();
  result.file_ = file_;
  result.object_ = &object;
  if (object.layout == Layout::chunked) result.decoded_ = std::make_shared<Hdf5Dataset::Decoded>();
  return result;
}

bool Hdf5File::has_attribute(const std::string& object, const std::string& name) const {
  const auto at = file_->description.objects.find(object);
  return at != file_->description.objects.end() && at->second.attributes.count(name) > 0;
}

const Hdf5Attribute& Hdf5File::attribute_of(const std::string& object, const std::string& name) const {
  if (!has_attribute(object, name)) fail(fmt::format("{}: attribute {} of {}", path(), name, object), "it is missing");
  return file_->description.objects.at(object).attributes.at(name);
}

std::string Hdf5File::string_attribute(const std::string& object, const std::string& name) const {
  const auto* text = std::get_if<std::string>(&attribute_of(object, name));
  if (text == nullptr) fail(fmt::format("{}: attribute {} of {}", path(), name, object), "it must be a string");
  return *text;
}

std::vector<std::int64_t> Hdf5File::integers_attribute(const std::string& object, const std::string& name) const {
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&attribute_of(object, name));
  if (numbers == nullptr)
    fail(fmt::format("{}: attribute {} of {}", path(), name, object), "it must be a few whole numbers");
  return *numbers;
}

template <class T>
T Hdf5File::attribute(const std::string& object, const std::string& name) const {
  return std::visit(
      [&](const auto& value) -> T {
        using Stored = std::decay_t<decltype(value)>;
        if constexpr (std::is_integral_v<T> && std::is_integral_v<Stored>) {
          if (std::in_range<T>(value)) return static_cast<T>(value);
        } else if constexpr (std::is_floating_point_v<T> && std::is_arithmetic_v<Stored>) {
          return static_cast<T>(value);
        }
        fail(fmt::format("{}: attribute {} of {}", path(), name, object),
             std::is_integral_v<T> ? "it must be one whole number" : "it must be one number");
      },
      attribute_of(object, name));
}

template std::int64_t Hdf5File::attribute<std::int64_t>(const std::string&, const std::string&) const;
template std::uint64_t Hdf5File::attribute<std::uint64_t>(const std::string&, const std::string&) const;
template double Hdf5File::attribute<double>(const std::string&, const std::string&) const;

template void Hdf5Dataset::read<std::int32_t>(std::int64_t, std::int64_t, std::int32_t*) const;
template void Hdf5Dataset::read<std::int64_t>(std::int64_t, std::int64_t, std::int64_t*) const;
template void Hdf5Dataset::read<std::uint64_t>(std::int64_t, std::int64_t, std::uint64_t*) const;
template void Hdf5Dataset::read<float>(std::int64_t, std::int64_t, float*) const;
template void Hdf5Dataset::read<double>(std::int64_t, std::int64_t, double*) const;

void Hdf5File::verify_description() const {
  if (!file_->own) return;
  std::vector<std::string> names;
  for (const auto& [name, object] : file_->description.objects)
    if (name != "/" && name.find('/', 1) == std::string::npos) names.push_back(name);
  Hdf5Description found = run_h5check(file_->file, names);
  found.file_bytes = file_->description.file_bytes;
  if (found.to_text() != file_->description.to_text())
    fail_damaged(path(), "its HDF5 metadata and its own description of them differ");
}

}  // namespace shardmat
