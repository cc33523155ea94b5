#include "tools/bench/batched_peers.h"

#include <algorithm>

namespace shardmat::tools {
namespace {

bool all_equal(std::int64_t count, const auto& of) {
  for (std::int64_t i = 1; i < count; ++i)
    if (of(i) != of(0)) return false;
  return true;
}

#ifdef SHARDMAT_HAVE_CUDA

std::string unless_empty(const PeerInput& input) { return input.host.nnz() > 0 ? "" : "takes no batch without nonzeros"; }
std::string unless_strided(const PeerInput& input) {
  return input.one_pattern_size() ? unless_empty(input) : "takes matrices of one shape with one number of nonzeros";
}

#ifdef SHARDMAT_HAVE_CUBLAS
std::string unless_one_shape(const PeerInput& input) {
  return input.one_shape() ? unless_empty(input) : "takes matrices of one shape";
}
#else
std::string not_built(const PeerInput&) { return "not in this build, as cuBLAS was not found when it was configured"; }
#endif

constexpr int kMany = 20;

constexpr PeerKind kPeers[] = {
    {"cusparse_plain", "cuSPARSE", true, 0, unless_empty, make_cusparse_plain},
    {"cusparse_graph", "its graph", false, 1, unless_empty, make_cusparse_graph},
    {"cusparse_block_diagonal", "diagonal", true, kMany, unless_empty, make_cusparse_block_diagonal},
    {"cusparse_strided", "strided", true, kMany, unless_strided, make_cusparse_strided},
#ifdef SHARDMAT_HAVE_CUBLAS
    {"cublas_gemm_batched", "gemm", true, kMany, unless_one_shape, make_cublas_gemm_batched},
    {"cublas_gemm_strided", "gemm strided", true, kMany, unless_one_shape, make_cublas_gemm_strided},
#else
    {"cublas_gemm_batched", "gemm", true, kMany, not_built, nullptr},
#endif
};

#else

constexpr std::span<const PeerKind> kPeers;

#endif

}  // namespace

bool PeerInput::one_shape() const {
  return all_equal(host.count(), [&](std::int64_t i) { return std::pair(host.rows_of(i), host.cols_of(i)); });
}

bool PeerInput::one_pattern_size() const {
  return one_shape() && all_equal(host.count(), [&](std::int64_t i) { return host.nnz_of(i); });
}

std::span<const PeerKind> batched_peers() { return kPeers; }

}  // namespace shardmat::tools
