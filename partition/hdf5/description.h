// The description of an HDF5 file as plain data: names, shapes, types, attributes, and the positions of the numbers in the
// file. It comes from the helper program shardmat-h5check, or from the end of a file that Shardmat wrote
// (own_description.h). Readers of HDF5 files use only this description and never call the HDF5 library.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace shardmat {

/// How the numbers of a dataset are stored.
struct Hdf5Number {
  enum class Kind { signed_integer, unsigned_integer, floating_point, other };
  Kind kind = Kind::other;
  int bytes = 0;  ///< integers: 1, 2, 4 or 8; floating_point: 2, 4 or 8 (IEEE 754)
  bool big_endian = false;
  std::string name;  ///< for messages, where kind is other: "an enumeration"

  bool operator==(const Hdf5Number&) const = default;
};

/// A range of bytes in a file: a whole array, or a part of it.
struct Hdf5Extent {
  std::string file;  ///< empty: the described file
  std::int64_t offset = 0, bytes = 0;
};

struct Hdf5Filter {
  int id = 0;  ///< 1 deflate, 2 shuffle, 3 fletcher32; others are refused
  std::string name;
};

struct Hdf5Chunk {
  std::int64_t offset = -1, bytes = 0;  ///< offset -1: never written
  std::uint32_t mask = 0;               ///< one bit for each filter that was skipped
};

/// Number, text, or 2 to 16 integers; std::monostate for an attribute of any other kind.
using Hdf5Attribute =
    std::variant<std::monostate, std::string, std::int64_t, std::uint64_t, double, std::vector<std::int64_t>>;

struct Hdf5Part;

struct Hdf5Object {
  enum class Kind { group, dataset, external_link, other };
  enum class Layout { contiguous, chunked, compact, external, virtual_dataset };
  Kind kind = Kind::other;
  std::map<std::string, Hdf5Attribute> attributes;

  std::vector<std::string> children;  ///< of a group: ascending names; at most kMostChildren for the root

  std::string target_file, target_object;  ///< of an external link

  Hdf5Number number;
  std::vector<std::int64_t> shape;  ///< of a dataset; empty for a single value
  bool located = false;             ///< the members below are known
  Layout layout = Layout::contiguous;
  std::string file;                 ///< the file that holds the object; empty: the described file
  std::vector<Hdf5Extent> extents;  ///< contiguous: one, or none if nothing was written; external: as listed
  std::string data;                 ///< compact: the bytes
  std::vector<std::int64_t> chunk;  ///< chunked: the shape of a chunk
  std::vector<Hdf5Filter> filters;  ///< chunked: in the order in which a writer applies them
  std::vector<Hdf5Chunk> chunks;    ///< chunked: all chunks, in row-major order
  std::vector<Hdf5Part> parts;      ///< virtual: rows of other datasets, as listed; none for any other virtual dataset
};

/// Whole rows of a virtual dataset, and the dataset from which they come.
struct Hdf5Part {
  std::int64_t begin = 0, rows = 0, source_begin = 0;
  std::string target_file, target_object;
  Hdf5Object source;  ///< the source dataset, if links are followed
};

struct Hdf5Description {
  static constexpr int kMostChildren = 10'000;
  /// The largest description that is read; the chunks of a terabyte of data need less.
  static constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

  std::int64_t file_bytes = 0;                ///< bytes of the described file, without its own description
  std::map<std::string, Hdf5Object> objects;  ///< by absolute path; the root is "/"

  /// One line of JSON.
  std::string to_text() const;
  /// Throws Error(input), which names `place`, if the text is no description. Does not check offsets and sizes.
  static Hdf5Description from_text(const std::string& text, const std::string& place);
};

}  // namespace shardmat
