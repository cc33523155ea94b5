#include <array>

#include "runtime/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/solvers/method.h"
#include "runtime/solvers/named.h"

namespace shardmat {
namespace {

constexpr std::array<MethodEntry, 1> kMethods{{
    {"cg", "conjugate gradients, for symmetric positive definite matrices", Demands::symmetric_positive_definite, make_cg},
}};

}  // namespace

std::span<const MethodEntry> methods() { return kMethods; }

const MethodEntry& find_method(std::string_view name) { return find_named(kMethods, "solver", name, "solver"); }

Context& MethodInputs::context() const { return matrix().context(); }
std::int64_t MethodInputs::rows() const { return matrix().local_rows(); }
ValueType MethodInputs::type() const { return sum_type(matrix().type()); }

void MethodInputs::residual(const void* b, const void* x, void* r, Stream& stream) const {
  copy_on_device(r, b, vector_bytes(), stream);
  product.multiply(-1, view(const_cast<void*>(x)), 1, view(r), stream);
}

}  // namespace shardmat
