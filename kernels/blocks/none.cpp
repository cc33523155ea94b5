// A build without CUDA.
#include "kernels/base/error.h"
#include "kernels/blocks/block_product.h"
#include "kernels/blocks/chunked_roots.h"
#include "kernels/blocks/columns_product.h"
#include "kernels/blocks/parts.h"
#include "kernels/blocks/setup.h"
#include "kernels/diagonal.h"
#include "kernels/random_entries.h"

namespace shardmat::blocks {
namespace {

[[noreturn]] void refuse() { throw Error(ErrorKind::internal, "this build has no GPU kernels"); }

}  // namespace

BlockProduct::BlockProduct(const BlockRows&, ValueType type, bool, Stream&, const Buffer*)
    : type_(type), row_size_(0), col_size_(0), team_(0), count_(0) {
  refuse();
}
void BlockProduct::update(const BlockRows&, Stream&) { refuse(); }
void BlockProduct::multiply(double, const void*, double, void*, Stream&) const { refuse(); }
void BlockProduct::multiply(const void*, const SmootherStep&, Stream&) const { refuse(); }
std::int64_t BlockProduct::bytes() const { return 0; }

bool ColumnsProduct::takes(int, int, int, std::int64_t) { return false; }
ColumnsProduct::ColumnsProduct(const BlockRows&, ValueType type, int columns, Stream&)
    : type_(type), row_size_(1), col_size_(1), columns_(columns), wide_(false), count_(0) {
  refuse();
}
void ColumnsProduct::update(const BlockRows&, Stream&) { refuse(); }
void ColumnsProduct::multiply(double, const void*, double, void*, Stream&) const { refuse(); }

HalfProduct::HalfProduct(const BlockRows&, const Buffer*, bool lanes, int team, Stream&)
    : size_(0), team_(team), lanes_(lanes), count_(0) {
  refuse();
}
void HalfProduct::update(const BlockRows&, Stream&) { refuse(); }
void HalfProduct::multiply(double, const void*, double, void*, Stream&) const { refuse(); }
void HalfProduct::multiply(const void*, const SmootherStep&, Stream&) const { refuse(); }
std::int64_t HalfProduct::bytes() const { return 0; }

bool SingleProduct::takes(const BlockRows&, ValueType, Stream&) { refuse(); }
SingleProduct::SingleProduct(const BlockRows&, ValueType type, bool is_square, const Buffer*, Stream&)
    : type_(type), is_square_(is_square), count_(0), slices_(0) {
  refuse();
}
void SingleProduct::update(const BlockRows&, Stream&) { refuse(); }
void SingleProduct::multiply(double, const void*, double, void*, Stream&) const { refuse(); }
void SingleProduct::multiply(const void*, const SmootherStep&, Stream&) const { refuse(); }
std::int64_t SingleProduct::bytes() const { return 0; }

BlockRows take_rows(const EntryRows&, Stream&) { refuse(); }
EntryPlaces find_places(const EntryRows&, const BlockRows&, Stream&) { refuse(); }
void set_values(const EntryPlaces&, const Buffer&, BlockRows&, Stream&) { refuse(); }
SingleEntries single_entries(const BlockRows&, ValueType, Stream&) { refuse(); }
void fill_fractions(ValueType, std::int64_t, std::int64_t, void*, Stream&) { refuse(); }
AsymmetrySums asymmetry_sums(const BlockRows&, const Buffer*, Stream&) { refuse(); }
double asymmetry(const AsymmetrySums&) { refuse(); }
Buffer diagonal_places(const BlockRows&, Stream&) { refuse(); }
Buffer inverse_diagonal(const BlockRows&, const Buffer&, Stream&) { refuse(); }
Couplings coupling_norms(const BlockRows&, const Buffer&, Stream&) { refuse(); }
Buffer find_hinges(const BlockRows&, const Buffer&, const Buffer&, Stream&) { refuse(); }
StrongGraph strong_couplings(const BlockRows&, const Couplings&, double, const Buffer*, Stream&) { refuse(); }
Aggregates make_aggregates(const StrongGraph&, Stream&) { refuse(); }
bool find_roots_by_chunks(const Graph&, std::int64_t, int*, Stream&) { refuse(); }
BlockRows tentative(const Aggregates&, const Buffer&, int, int, Buffer&, Stream&) { refuse(); }
void smooth(BlockRows&, const BlockRows&, const Buffer&, const Buffer&, double, Stream&) { refuse(); }
BlockRows product_pattern(const BlockRows&, const BlockRows&, std::int64_t, int&, Stream&) { refuse(); }
void multiply_values(const BlockRows&, const BlockRows&, int, BlockRows&, Stream&) { refuse(); }
BlockRows transposed(const BlockRows&, Buffer&, Stream&) { refuse(); }
void transpose_values(const BlockRows&, const Buffer&, BlockRows&, Stream&) { refuse(); }
Buffer diagonal_scales(const BlockRows&, const Aggregates&, const BlockRows&, const Buffer&, Stream&) { refuse(); }
void mend_diagonal(BlockRows&, const Buffer&, Stream&) { refuse(); }
BlockRows dense_inverse(const BlockRows&, Stream&) { refuse(); }
Buffer constant_modes(std::int64_t, int, Stream&) { refuse(); }
Buffer rigid_body_modes(const Buffer&, int, std::int64_t, int, const double*, double, Stream&) { refuse(); }
void clear_alone(const BlockRows&, Buffer&, int, Stream&) { refuse(); }
RowCounts count_small_rows(const BlockRows&, const Buffer&, int, std::int64_t, double, Stream&) { refuse(); }
Bodies find_bodies(const BlockRows&, const Couplings&, const Buffer&, int, Stream&) { refuse(); }
void body_sums(const BlockRows&, const Buffer&, const Buffer&, int, const Bodies&, std::int32_t, double*, Stream&) {
  refuse();
}

Buffer gathered(const Buffer&, std::int64_t, std::span<const std::int32_t>, Stream&) { refuse(); }
RowsInHostMemory some_rows(const BlockRows&, std::span<const std::int32_t>, Stream&) { refuse(); }
HostVector<char> used_columns(const BlockRows&, std::int64_t, Stream&) { refuse(); }
Buffer renumbered(const Buffer&, std::span<const std::int32_t>, Stream&) { refuse(); }
BlockRows stacked(const BlockRows&, std::int64_t, std::span<const std::int32_t>, const RowsInHostMemory&, std::int64_t,
                  Stream&) {
  refuse();
}
BlockRows with_gap(const BlockRows&, std::int64_t, std::int64_t, Stream&) { refuse(); }
BlockRows identity_rows(std::span<const std::int64_t>, const HostVector<std::int32_t>&, std::int64_t, int, Stream&) {
  refuse();
}
BodiesAtGhosts bodies_at_ghosts(const BlockRows&, const Couplings&, const Bodies&, Stream&) { refuse(); }

}  // namespace shardmat::blocks

void shardmat::fill_random_entries(ValueType, std::uint64_t, std::int64_t, std::int64_t, std::int64_t, bool, const void*,
                                   void*, Stream&) {
  throw Error(ErrorKind::internal, "this build has no GPU kernels");
}

shardmat::DiagonalExtremes shardmat::diagonal_extremes(const CsrStorage&, std::int64_t, Stream&) {
  throw Error(ErrorKind::internal, "this build has no GPU kernels");
}
void shardmat::copy_diagonal(const CsrStorage&, std::int64_t, void*, Stream&) {
  throw Error(ErrorKind::internal, "this build has no GPU kernels");
}
