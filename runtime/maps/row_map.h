// Which rows of a distributed vector each rank has, and in which order they lie in memory. A matrix has two maps: one for
// the rows of y, one for the entries of x, which its columns name. A vector and a matrix fit if the numbers of their maps
// are equal.
//
// Ownership: shared by its matrices and vectors; its context must outlive the vectors.
// Threads: a map does not change once it is made, and any thread may read it. make() is collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"

namespace shardmat {

class Context;
class RangeRoute;

/// What a map is made from.
struct RowMapParts {
  std::int64_t size = 0;             ///< rows of all ranks
  std::vector<std::int64_t> starts;  ///< of each rank in the order of the source; P + 1 entries
  HostVector<std::int64_t> ids;      ///< original index of each row of this rank, in the order in which they lie in memory
  /// Position of each row in the order of the source, counted from this rank's first row; empty: they lie in this order.
  HostVector<std::int64_t> places;
  /// From the rows that this rank gave to those that it has; null: they are the same.
  std::shared_ptr<const RangeRoute> route;

  std::int64_t place(std::size_t row) const { return places.empty() ? static_cast<std::int64_t>(row) : places[row]; }
  /// The ids in the order of the source.
  HostVector<std::int64_t> ids_by_place() const;
};

/// This rank's even share of `size` rows, in the order of their ids.
RowMapParts even_share(std::int64_t size, int ranks, int rank);

class RowMap {
 public:
  /// The map of these rows. If an equal map of this context still exists, returns that one. Collective: two messages of 8
  /// bytes a rank. `context` must outlive vectors made on the map, but not the map's ids and number.
  static std::shared_ptr<const RowMap> make(RowMapParts parts, Context& context);

  /// The same on all ranks, never 0. Maps whose rows lie alike on all ranks have the same number, whichever matrix made
  /// them. Two other maps have the same number with a chance of 2⁻⁶⁴: it is made from XXH64 of the ids of each rank. Maps
  /// with the same ids from sources in different orders have the same number, but are two objects.
  std::uint64_t number() const { return number_; }

  Context& context() const { return context_; }
  std::int64_t size() const { return parts_.size; }                          ///< rows of all ranks
  std::int64_t local_rows() const { return std::ssize(parts_.ids); }         ///< of this rank
  const std::vector<std::int64_t>& starts() const { return parts_.starts; }  ///< as RowMapParts, and so are the next five
  const HostVector<std::int64_t>& ids() const { return parts_.ids; }
  const HostVector<std::int64_t>& places() const { return parts_.places; }  ///< empty on ranks whose rows lie in order
  std::int64_t place(std::size_t row) const { return parts_.place(row); }
  HostVector<std::int64_t> ids_by_place() const { return parts_.ids_by_place(); }
  /// The place of each row, and the row in each place.
  HostVector<std::int64_t> places_of_rows() const;
  HostVector<std::int64_t> rows_by_place() const;
  const RangeRoute* route() const { return parts_.route.get(); }
  /// The rows of this rank lie in the order of the source.
  bool in_source_order() const { return parts_.places.empty(); }
  /// The ids of this rank follow each other, from one to another; not without rows.
  bool is_range() const { return is_range_; }
  /// Number of rows that the caller of this rank gives and gets: local_rows(); if rows were spread anew (own_rows.h), as
  /// many as the rank gave.
  std::int64_t own_rows() const;

 private:
  bool equals(const RowMap& other) const;

  RowMap(RowMapParts parts, Context& context);

  Context& context_;
  RowMapParts parts_;
  bool is_range_ = true;
  std::uint64_t number_ = 0;
};

/// Throws Error(usage), naming both maps, unless the number of a view's map is that of `wanted` or 0 (not told). `what`
/// names the view: "X"; `side` names the rows of the map: "the entries of x".
void require_row_map(const char* what, std::uint64_t number, const RowMap& wanted, const char* side);

}  // namespace shardmat
