// CRS with NT threads a row, as we read Okada, Okamoto and Imamura: the kernel for which their formula for NT is judged.
// csr_vector is what we make of the same idea.
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/formats/csr.h"

namespace shardmat {

/// Tunable threads_per_row, NT of the paper: 1, 2, 4 … 32; the policy is that of the formula.
inline std::vector<Policy> crs_paper_policies(const RowStatistics& rows) {
  return {Policy{{"threads_per_row", threads_per_row_by_formula(rows)}}};
}

/// The tunable. Throws Error(usage) for another number.
inline int crs_paper_threads(const Policy& policy) {
  const int threads = policy.at("threads_per_row");
  if (threads < 1 || threads > 32 || !std::has_single_bit(static_cast<unsigned>(threads)))
    throw Error(ErrorKind::usage, "crs_paper: threads_per_row must be 1, 2, 4, 8, 16 or 32");
  return threads;
}

std::unique_ptr<Plan> make_crs_paper(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);
std::unique_ptr<Plan> make_crs_paper_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream& stream);

}  // namespace shardmat
