// The instruction set of host kernels. One program holds the kernels compiled for each set and takes one of them when it
// makes a plan, so that a plan always gives the same bits.
//
// Threads: any thread may call this. Each thread has its own instruction_set(), as it has its own thread_count().
#pragma once

#include <string_view>

namespace shardmat {

/// In ascending order: a CPU with one of them has all before it.
enum class Isa {
  baseline,  ///< what every CPU of the architecture has: SSE2 on x86-64, NEON on aarch64
  avx2,      ///< x86-64 with AVX2, FMA and F16C
  avx512,    ///< x86-64 with AVX-512 F, VL, DQ and BW too
};

/// "baseline", "avx2", "avx512".
std::string_view name(Isa isa);

/// The highest set that this CPU and this program have.
Isa best_isa();

/// The set that SHARDMAT_ISA names, else best_isa(). Throws Error(usage) for an unknown name, and for a set that this CPU
/// lacks.
Isa isa_of_environment();

/// The set for plans that the calling thread makes: of the innermost IsaScope, else isa_of_environment().
Isa instruction_set();

/// Sets instruction_set() of the calling thread while in scope, and restores the old one. REQUIRES: isa <= best_isa().
class IsaScope {
 public:
  explicit IsaScope(Isa isa);
  ~IsaScope();
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  const Isa* previous_;
  Isa isa_;
};

}  // namespace shardmat
