#include "tools/serve/state/vectors.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

bool Vector::is_visible_to(const Rights& rights) const {
  if (is_owned_by(rights)) return matrix.empty() || rights.may_use(matrix);
  return matches_any(shared, rights.name()) && (matrix.empty() || rights.may_use(matrix));
}

std::string new_vector_id() {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    throw Error(ErrorKind::resources, "the system gives no random numbers for the id of a vector");
  std::string id = "vec-";
  for (const unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

std::variant<const Vector*, Problem> Vectors::find(const std::string& id, const Rights& rights) const {
  const auto number = by_id_.find(id);
  const Vector* found = number == by_id_.end() ? nullptr : &vectors_.at(number->second);
  if (found == nullptr || !found->is_visible_to(rights))
    return make_problem(404, "no_vector", fmt::format("there is no vector {}", id));
  if (!found->lost) return found;
  return make_problem(410, "vector_lost",
                      fmt::format("{} was lost when the ranks were started again; make another one", id));
}

void Vectors::add(Vector vector) {
  by_id_[vector.id] = vector.number;
  vectors_[vector.number] = std::move(vector);
}

void Vectors::erase(std::uint64_t number) {
  const auto found = vectors_.find(number);
  if (found == vectors_.end()) return;
  by_id_.erase(found->second.id);
  vectors_.erase(found);
}

std::vector<std::uint64_t> Vectors::erase_unowned(const std::function<bool(const std::string& owner)>& exists) {
  std::vector<std::uint64_t> gone, on_ranks;
  for (const auto& [number, vector] : vectors_) {
    if (exists(vector.owner)) continue;
    gone.push_back(number);
    if (!vector.lost) on_ranks.push_back(number);
  }
  for (const std::uint64_t number : gone) erase(number);
  return on_ranks;
}

void Vectors::lose_all() {
  for (auto& [number, vector] : vectors_) vector.lost = true, vector.charge.reset();
}

}  // namespace shardmat::serve
