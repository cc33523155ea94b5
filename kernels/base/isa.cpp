#include "kernels/base/isa.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr std::string_view kNames[] = {"baseline", "avx2", "avx512"};
thread_local const Isa* isa_in_scope = nullptr;

Isa isa_of_cpu() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

}  // namespace

std::string_view name(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa best_isa() {
  static const Isa best = isa_of_cpu();
  return best;
}

Isa isa_of_environment() {
  const char* wanted = std::getenv("SHARDMAT_ISA");
  if (wanted == nullptr || *wanted == '\0') return best_isa();
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (wanted != kNames[i]) continue;
    if (static_cast<Isa>(i) <= best_isa()) return static_cast<Isa>(i);
    throw Error(ErrorKind::usage, fmt::format("SHARDMAT_ISA={}: this CPU has no {}; the highest set that it has is {}",
                                              wanted, wanted, name(best_isa())));
  }
  throw Error(ErrorKind::usage, fmt::format("SHARDMAT_ISA={}: there is no such instruction set; choose {}", wanted,
                                            join_choices(std::vector<std::string>(std::begin(kNames), std::end(kNames)))));
}

Isa instruction_set() {
  if (isa_in_scope != nullptr) return *isa_in_scope;
  static const Isa of_environment = isa_of_environment();
  return of_environment;
}

IsaScope::IsaScope(Isa isa) : previous_(std::exchange(isa_in_scope, &isa_)), isa_(isa) {}
IsaScope::~IsaScope() { isa_in_scope = previous_; }

}  // namespace shardmat
