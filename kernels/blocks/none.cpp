// A build without CUDA.
#include "kernels/base/error.h"
#include "kernels/blocks/block_product.h"

namespace shardmat::blocks {
namespace {

[[noreturn]] void refuse() { throw Error(ErrorKind::internal, "this build has no GPU kernels"); }

}  // namespace

BlockProduct::BlockProduct(const BlockRows&, ValueType type, Stream&)
    : type_(type), row_size_(0), col_size_(0), team_(0), count_(0) {
  refuse();
}
void BlockProduct::update(const BlockRows&, Stream&) { refuse(); }
void BlockProduct::multiply(double, const void*, double, void*, Stream&) const { refuse(); }
void BlockProduct::multiply(const void*, const SmootherStep&, Stream&) const { refuse(); }
std::int64_t BlockProduct::bytes() const { return 0; }

}  // namespace shardmat::blocks
