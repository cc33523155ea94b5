#include "runtime/solvers/loop/gram_schmidt.h"

#include "runtime/solvers/loop/named.h"

namespace shardmat {

std::string_view name(GramSchmidt choice) { return choice == GramSchmidt::classical ? "classical" : "modified"; }

GramSchmidt parse_gram_schmidt(std::string_view text) {
  for (const GramSchmidt choice : {GramSchmidt::classical, GramSchmidt::modified})
    if (name(choice) == text) return choice;
  refuse_name("variant of Gram-Schmidt", text, {"classical", "modified"}, "gram_schmidt");
}

}  // namespace shardmat
