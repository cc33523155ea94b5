#include "tools/serve/state/saved_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {
namespace {

/// Seconds until a list that could not be written is written again, at first and at most.
constexpr double kSaveDelay = 1, kLongestSaveDelay = 60;

}  // namespace

SavedMatrices::SavedMatrices(EventLoop& loop, const StateDirectory& state, std::function<std::vector<WantedMatrix>()> wanted)
    : state_(state), wanted_(std::move(wanted)), later_(loop), background_(loop) {}

std::vector<WantedMatrix> SavedMatrices::read() {
  std::vector<WantedMatrix> all = state_.read_matrices();
  for (const WantedMatrix& one : all) saved_[one.name] = one;
  return all;
}

SavedMatrices::Attempt SavedMatrices::next_attempt() {
  Attempt attempt{++last_attempt_, {}, {}};
  for (const WantedMatrix& one : wanted_()) attempt.list[one.name] = one;
  return attempt;
}

/// On any thread. An older list never takes the place of a newer one.
void SavedMatrices::write(Attempt& attempt) {
  const std::lock_guard lock(disk_);
  if (attempt.number < written_) return;
  std::vector<WantedMatrix> all;
  for (const auto& [name, one] : attempt.list) all.push_back(one);
  try {
    state_.write_matrices(all);
    written_ = attempt.number;
  } catch (const Error& error) {
    attempt.error = error.what();
  }
}

void SavedMatrices::save() {
  again_ = writes_;
  if (writes_) return;
  Attempt attempt = next_attempt();
  if (why_unsaved_.empty() && attempt.list == saved_) return;
  begin(std::move(attempt));
}

void SavedMatrices::begin(Attempt attempt) {
  writes_ = true;
  const auto shared = std::make_shared<Attempt>(std::move(attempt));
  background_.run([this, shared] { write(*shared); }, [this, shared] { finish(*shared); });
}

void SavedMatrices::finish(const Attempt& attempt) {
  take(attempt);
  writes_ = false;
  const auto tried = std::exchange(tried_, std::exchange(next_, {}));
  if (std::exchange(again_, false)) save();
  auto nobody = writes_ ? std::vector<std::function<void()>>() : std::exchange(tried_, {});
  for (const auto& one : tried) one();
  for (const auto& one : nobody) one();
}

void SavedMatrices::take(const Attempt& attempt) {
  if (attempt.number < taken_) return;
  taken_ = attempt.number;
  if (!attempt.error.empty()) {
    ++failed_attempts_;
    if (why_unsaved_.empty())
      log_line(fmt::format("the list of matrices is not saved; this is tried again: {}", attempt.error));
    why_unsaved_ = attempt.error;
    delay_ = std::clamp(2 * delay_, kSaveDelay, kLongestSaveDelay);
    later_.start(delay_, [this] { save(); });
    return;
  }
  saved_ = attempt.list;
  if (!why_unsaved_.empty()) log_line("the list of matrices is saved again");
  why_unsaved_.clear();
  delay_ = 0;
  later_.cancel();
}

void SavedMatrices::when_tried(std::function<void()> tried) {
  if (!writes_) return tried();
  (again_ ? next_ : tried_).push_back(std::move(tried));
}

void SavedMatrices::save_now() {
  Attempt attempt = next_attempt();
  if (!writes_ && why_unsaved_.empty() && attempt.list == saved_) return;
  write(attempt);
  take(attempt);
  if (!attempt.error.empty()) throw Error(ErrorKind::resources, attempt.error, "state");
}

const WantedMatrix* SavedMatrices::find(const std::string& name) const {
  const auto found = saved_.find(name);
  return found == saved_.end() ? nullptr : &found->second;
}

}  // namespace shardmat::serve
