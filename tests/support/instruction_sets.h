// The instruction sets that host kernels are tested with.
#pragma once

#include <vector>

#include "kernels/base/isa.h"

namespace shardmat::test {

/// Those that this CPU has, in ascending order.
inline std::vector<Isa> instruction_sets() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa <= best_isa()) all.push_back(isa);
  return all;
}

}  // namespace shardmat::test
