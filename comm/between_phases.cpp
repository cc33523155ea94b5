#include "comm/between_phases.h"

#include <utility>

namespace shardmat {
namespace {

thread_local BetweenPhases* open_scope = nullptr;

}  // namespace

BetweenPhases::BetweenPhases(const Communicator& ranks, std::function<void()> action)
    : ranks_(ranks), action_(std::move(action)) {
  open_scope = this;
}

BetweenPhases::~BetweenPhases() { open_scope = nullptr; }

void BetweenPhases::pass(const Communicator& ranks) {
  BetweenPhases* const scope = open_scope;
  if (scope == nullptr || &scope->ranks_ != &ranks || scope->acts_) return;
  struct Acting {
    explicit Acting(bool& flag) : acts(flag) { acts = true; }
    ~Acting() { acts = false; }
    bool& acts;
  } const acting(scope->acts_);
  scope->action_();
}

}  // namespace shardmat
