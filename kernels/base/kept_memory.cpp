#include "kernels/base/kept_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/kept_arrays.h"

namespace shardmat {
namespace {

struct Kinds {
  std::mutex mutex;
  std::vector<KeptMemory*> all;
  int keepers = 0;

  static Kinds& of_process() {
    static Kinds* const kinds = new Kinds;  // never destroyed: static objects may hold memory
    return *kinds;
  }
  void keep(int more) noexcept {
    const std::lock_guard lock(mutex);
    keepers += more;
    for (KeptMemory* const kind : all) kind->keep(more);
  }
};

}  // namespace

KeptMemory::KeptMemory() {
  Kinds& kinds = Kinds::of_process();
  const std::lock_guard lock(kinds.mutex);
  kinds.all.push_back(this);
  keepers_ = kinds.keepers;
}

void* KeptMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = rounded(bytes);
  Blocks::node_type block = take_kept(bytes);
  if (block.empty()) {
    Blocks one{{nullptr, {bytes, 0, nullptr}}};
    block = one.extract(one.begin());
    block.key() = fresh(bytes, block.mapped());
    if (block.key() == nullptr) {  // what is kept may be what is missing
      free_kept_beyond(0);
      block.key() = fresh(bytes, block.mapped());
    }
    if (block.key() == nullptr) return nullptr;
  }
  void* const memory = block.key();
  bytes_in_use_ += block.mapped().bytes;
  in_use_.insert(std::move(block));
  most_in_use_ = std::max(most_in_use_, bytes_in_use_);
  bound_kept();
  return memory;
}

void KeptMemory::free(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  Blocks::node_type block = in_use_.extract(memory);
  bytes_in_use_ -= block.mapped().bytes;
  if (keepers_ == 0) return release(memory, block.mapped());
  bytes_kept_ += block.mapped().bytes;
  block.mapped().freed = ++frees_;
  kept_.insert(std::move(block));
  bound_kept();
}

void KeptMemory::free_kept() noexcept {
  const std::lock_guard lock(mutex_);
  free_kept_beyond(0);
}

std::size_t KeptMemory::kept_bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_kept_;
}

void KeptMemory::keep(int more) noexcept {
  const std::lock_guard lock(mutex_);
  if (keepers_ == 0) most_in_use_ = bytes_in_use_;
  keepers_ += more;
  if (keepers_ == 0) free_kept_beyond(0), stop_keeping();
}

/// The smallest that suffices and is not twice as large.
KeptMemory::Blocks::node_type KeptMemory::take_kept(std::size_t bytes) {
  auto best = kept_.end();
  for (auto one = kept_.begin(); one != kept_.end(); ++one)
    if (one->second.bytes >= bytes && one->second.bytes < 2 * bytes &&
        (best == kept_.end() || one->second.bytes < best->second.bytes))
      best = one;
  if (best == kept_.end()) return {};
  if (best->second.freed > settled_) settle(), settled_ = frees_;
  bytes_kept_ -= best->second.bytes;
  return kept_.extract(best);
}

/// The oldest first.
void KeptMemory::free_kept_beyond(std::size_t most) noexcept {
  while (bytes_kept_ > most) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                         [](const auto& a, const auto& b) { return a.second.freed < b.second.freed; });
    bytes_kept_ -= oldest->second.bytes;
    Blocks::node_type block = kept_.extract(oldest);
    release(block.key(), block.mapped());
  }
}

void free_kept_arrays() {
  Kinds& kinds = Kinds::of_process();
  const std::lock_guard lock(kinds.mutex);
  for (KeptMemory* const kind : kinds.all) kind->free_kept();
}

KeptArrays::KeptArrays() { Kinds::of_process().keep(1); }
KeptArrays::~KeptArrays() { Kinds::of_process().keep(-1); }

}  // namespace shardmat
