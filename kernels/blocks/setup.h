// Passes of the set-up of multigrid on a GPU; runtime/solvers/multigrid has their twins in host memory, which say what each
// computes. Rows are those of one rank; columns of other ranks' nodes, its ghosts, are numbered behind its own, and nothing
// is coupled strongly with them.
//
// Threads: as Stream. All functions wait for the stream where they return sizes, and work in its order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

/// Thrown for a row of more blocks than a pattern has room for here (row_patterns.h).
struct TooWide {};

/// The pattern of rows of single entries on the device, in the order of the source, `size` for each node. `source_of`: of
/// each column the row of the source; null: it is the same.
struct EntryRows {
  std::int64_t rows, nnz;
  int size;
  const std::int64_t* row_ptr;
  const std::int32_t* column;
  const std::int32_t* source_of = nullptr;
};

/// The rows by nodes, in the order of the source, with a block on each diagonal, without values. Throws TooWide.
BlockRows take_rows(const EntryRows& entries, Stream& stream);
/// Where the entries go among the values of the blocks. Nodes whose rows are whole blocks, one after another, need no list.
struct EntryPlaces {
  Buffer row_ptr;  ///< std::int64_t: of the entries
  Buffer offset;   ///< std::int64_t: where the list of each node begins, and the end
  Buffer place;    ///< std::uint32_t: of the listed nodes' entries, counted from the node's first value
  std::int64_t bytes() const { return static_cast<std::int64_t>(row_ptr.bytes() + offset.bytes() + place.bytes()); }
};
EntryPlaces find_places(const EntryRows& entries, const BlockRows& a, Stream& stream);
/// Gives `a` the values of the entries, double, in their order.
void set_values(const EntryPlaces& places, const Buffer& values, BlockRows& a, Stream& stream);

/// The same matrix as CSR of single entries, in f32 or f64: std::int64_t offsets and std::int32_t columns. Waits for
/// nothing.
struct SingleEntries {
  Buffer row_ptr, column, value;
};
SingleEntries single_entries(const BlockRows& a, ValueType type, Stream& stream);

/// The entries from `first` on of a vector of random ones, ±[½, 1) in f32 or f64, which is always the same.
void fill_fractions(ValueType type, std::int64_t first, std::int64_t count, void* to, Stream& stream);

/// As multigrid::asymmetry(), from the sums of all ranks. `numbers`: std::int64_t, of the nodes of the columns among those
/// of all ranks; null: this rank has all.
using AsymmetrySums = std::array<double, 9>;
AsymmetrySums asymmetry_sums(const BlockRows& a, const Buffer* numbers, Stream& stream);
double asymmetry(const AsymmetrySums& sums);

/// std::int64_t a row: its block on the diagonal, or -1.
Buffer diagonal_places(const BlockRows& a, Stream& stream);
/// double: a block a row, as multigrid::inverse_diagonal().
Buffer inverse_diagonal(const BlockRows& a, const Buffer& diagonal, Stream& stream);

/// multigrid::CouplingNorms, in double.
struct Couplings {
  Buffer square;    ///< a block
  Buffer diagonal;  ///< a row
};
Couplings coupling_norms(const BlockRows& a, const Buffer& diagonal, Stream& stream);
/// char a block, as multigrid::find_hinges().
Buffer find_hinges(const BlockRows& a, const Buffer& diagonal, const Buffer& inverse, Stream& stream);

/// multigrid::StrongGraph.
struct StrongGraph {
  std::int64_t count = 0, edges = 0;
  Buffer start;  ///< std::int64_t
  Buffer node;   ///< std::int32_t
  Buffer alone;  ///< char
};
/// `hinges`: null for none.
StrongGraph strong_couplings(const BlockRows& a, const Couplings& couplings, double theta, const Buffer* hinges,
                             Stream& stream);

/// multigrid::Aggregates, numbered by their roots.
struct Aggregates {
  std::int64_t count = 0, single = 0, taken = 0;  ///< taken: nodes in an aggregate
  Buffer of_node;                                 ///< std::int32_t
  Buffer start, member;                           ///< std::int64_t, std::int32_t: the nodes of each aggregate, ascending
};
/// The aggregates of multigrid::make_aggregates() for a symmetric graph, found by all nodes at once: a node waits for those
/// before it that could be a root in its place (G. Blelloch, J. Fineman, J. Shun, Greedy sequential maximal independent set
/// and matching are parallel on average, SPAA 2012).
Aggregates make_aggregates(const StrongGraph& graph, Stream& stream);

/// As multigrid::tentative(). `modes`: double, s·m values a node; `coarse`: becomes m·m values an aggregate.
BlockRows tentative(const Aggregates& aggregates, const Buffer& modes, int s, int m, Buffer& coarse, Stream& stream);
/// A·T becomes P = T − omega·D⁻¹·A·T, as multigrid::smoothed(). `column_of_node`: the column of each row of T, -1: none.
void smooth(BlockRows& of_product, const BlockRows& t, const Buffer& column_of_node, const Buffer& inverse, double omega,
            Stream& stream);

/// The pattern of A·B, without columns if it has more than `most` blocks. `longest`: becomes the length of the longest row.
/// Throws TooWide.
BlockRows product_pattern(const BlockRows& a, const BlockRows& b, std::int64_t most, int& longest, Stream& stream);
/// The values of A·B on its pattern.
void multiply_values(const BlockRows& a, const BlockRows& b, int longest, BlockRows& out, Stream& stream);

/// Aᵀ. `block_of`: becomes, of each of its blocks, the one of A, std::int32_t.
BlockRows transposed(const BlockRows& a, Buffer& block_of, Stream& stream);
/// New values of Aᵀ.
void transpose_values(const BlockRows& a, const Buffer& block_of, BlockRows& out, Stream& stream);

/// As multigrid::mend_diagonal(), with the terms that diagonal entries are sums of: double, a value for each unknown of an
/// aggregate.
Buffer diagonal_scales(const BlockRows& t, const Aggregates& aggregates, const BlockRows& a, const Buffer& diagonal,
                       Stream& stream);
void mend_diagonal(BlockRows& coarse, const Buffer& scale, Stream& stream);

/// A⁻¹, as multigrid::dense_inverse() of a symmetric matrix without free modes.
BlockRows dense_inverse(const BlockRows& a, Stream& stream);

/// Constants: unknown r of a node in mode r.
Buffer constant_modes(std::int64_t nodes, int size, Stream& stream);
/// As multigrid's rigid-body modes about `centre` (3 values); `coordinates`: double on the device.
Buffer rigid_body_modes(const Buffer& coordinates, int dimensions, std::int64_t nodes, int size, const double* centre,
                        double reach, Stream& stream);
/// Rows without couplings get no modes.
void clear_alone(const BlockRows& a, Buffer& modes, int count, Stream& stream);
/// Of every step-th node: rows that map all modes to at most `small` times the sum of magnitudes, and coupled rows.
struct RowCounts {
  std::int64_t small = 0, coupled = 0;
};
RowCounts count_small_rows(const BlockRows& a, const Buffer& modes, int count, std::int64_t step, double small,
                           Stream& stream);

/// Nodes that couplings connect, as bodies of multigrid::free_modes(). Of nodes with modes.
struct Bodies {
  static constexpr int kListed = 8;
  std::int64_t count = 0;
  std::vector<std::int32_t> listed;  ///< the least node of each, if there are at most kListed
  Buffer of_node;                    ///< std::int32_t: the least node of its body; -1: none
};
Bodies find_bodies(const BlockRows& a, const Couplings& couplings, const Buffer& modes, int count, Stream& stream);
/// Sums over the nodes of the body with the least node `body`: Vᵀ·A·V and Vᵀ·V, m × m each, and the largest magnitude on the
/// diagonal. `sums`: host memory for 2·m·m + 1 values.
void body_sums(const BlockRows& a, const Buffer& diagonal, const Buffer& modes, int count, const Bodies& bodies,
               std::int32_t body, double* sums, Stream& stream);

}  // namespace shardmat::blocks
