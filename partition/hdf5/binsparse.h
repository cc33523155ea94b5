// The JSON descriptor of a Binsparse matrix (https://graphblas.org/binsparse-specification/), which is the attribute
// `binsparse` of the root or of a group.
#pragma once

#include <cstdint>
#include <string>

#include "partition/hdf5/file.h"

namespace shardmat::binsparse {

constexpr const char* kAttribute = "binsparse";

enum class Order { rows, columns };  ///< which index goes first

/// The triangle that stands for the whole matrix, and how.
enum class Structure { general, symmetric, skew_symmetric, hermitian };

struct Descriptor {
  std::string format;  ///< "CSR", as the file has it
  Order order = Order::rows;
  bool compressed = true;  ///< has pointers; else an index for each value
  bool doubly = false;     ///< has the indices of the rows (or columns) that are not empty
  std::int64_t rows = 0, cols = 0;
  std::int64_t stored = 0;  ///< indices; values, too, unless iso
  Structure structure = Structure::general;
  bool lower = false;      ///< of a structure: the lower triangle is stored
  bool iso = false;        ///< one value for all
  bool complex = false;    ///< the values are pairs
  std::string word;        ///< of the structure: "symmetric_lower"
  std::string value_type;  ///< "iso[int8]"

  /// The form that a shard file has: real CSR of the whole matrix, a value for each index.
  bool plain() const {
    return compressed && !doubly && order == Order::rows && structure == Structure::general && !iso && !complex;
  }
};

/// Throws Error(input) for a missing or malformed descriptor, a dense or custom format, a vector, and a fill value.
/// `object`: "/" or the name of a group.
Descriptor read_descriptor(const Hdf5File& file, const std::string& object);

/// True if the root has a descriptor of a matrix that is read, and it is not plain(). Does not throw.
bool has_other_form(const Hdf5File& file);

}  // namespace shardmat::binsparse
