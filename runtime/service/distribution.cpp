#include "runtime/service/distribution.h"

#include <algorithm>

#include "kernels/base/memory_limits.h"

namespace shardmat::service {
namespace {

bool is_range(std::span<const std::int64_t> ids) {
  for (std::size_t i = 1; i < ids.size(); ++i)
    if (ids[i] != ids[0] + static_cast<std::int64_t>(i)) return false;
  return !ids.empty();
}

}  // namespace

std::shared_ptr<Distribution> make_distribution(std::int64_t size, std::span<const std::int64_t> ids,
                                                Communicator& communicator) {
  auto made = std::make_shared<Distribution>();
  communicator.together([&] {
    require_host_memory(8 * std::ssize(ids), "the indices of a vector's entries");
    made->size = size;
    made->ids.assign(ids.begin(), ids.end());
    made->is_range = is_range(ids);
  });
  return made;
}

/// Null if it is not known.
std::shared_ptr<const Distribution> Distributions::find(std::int64_t size, std::span<const std::int64_t> ids,
                                                        Communicator& communicator) {
  std::erase_if(known_, [](const auto& one) { return one.expired(); });
  std::vector<int> same;
  for (const auto& weak : known_) {
    const auto one = weak.lock();
    same.push_back(one->size == size && std::equal(ids.begin(), ids.end(), one->ids.begin(), one->ids.end()) ? 1 : 0);
  }
  communicator.all_reduce(std::span<int>(same), Reduction::min);
  for (std::size_t i = 0; i < same.size(); ++i)
    if (same[i] == 1) return known_[i].lock();
  return nullptr;
}

std::shared_ptr<const Distribution> Distributions::add(std::shared_ptr<Distribution> made) {
  made->number = ++last_;
  known_.push_back(made);
  return made;
}

std::shared_ptr<const Distribution> Distributions::find_or_add(std::int64_t size, std::span<const std::int64_t> ids,
                                                               Communicator& communicator) {
  if (auto known = find(size, ids, communicator)) return known;
  return add(make_distribution(size, ids, communicator));
}

std::shared_ptr<const Distribution> Distributions::find_or_add(std::shared_ptr<Distribution> made,
                                                               Communicator& communicator) {
  if (auto known = find(made->size, made->ids, communicator)) return known;
  return add(std::move(made));
}

}  // namespace shardmat::service
