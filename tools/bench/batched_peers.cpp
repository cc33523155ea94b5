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
    {.name = "cusparse_plain", .heading = "cuSPARSE", .plain = true, .why_not = unless_empty, .make = make_cusparse_plain},
    {.name = "cusparse_graph", .heading = "its graph", .in_graph = 1, .why_not = unless_empty, .make = make_cusparse_graph},
    {.name = "cusparse_block_diagonal",
     .heading = "diagonal",
     .plain = true,
     .in_graph = kMany,
     .why_not = unless_empty,
     .make = make_cusparse_block_diagonal},
    {.name = "cusparse_strided",
     .heading = "strided",
     .plain = true,
     .in_graph = kMany,
     .why_not = unless_strided,
     .make = make_cusparse_strided},
#ifdef SHARDMAT_HAVE_CUBLAS
    {.name = "cublas_gemm_batched",
     .heading = "gemm",
     .plain = true,
     .in_graph = kMany,
     .why_not = unless_one_shape,
     .make = make_cublas_gemm_batched},
    {.name = "cublas_gemm_strided",
     .heading = "gemm strided",
     .plain = true,
     .in_graph = kMany,
     .why_not = unless_one_shape,
     .make = make_cublas_gemm_strided},
#else
    {.name = "cublas_gemm_batched", .heading = "gemm", .plain = true, .in_graph = kMany, .why_not = not_built},
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
