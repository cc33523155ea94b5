#include "tools/serve/ranks/batching.h"

#include <algorithm>

namespace shardmat::serve {

using service::WidthTime;

namespace {

/// How fast the expected time of a width follows what is observed, and those of the others go back to what was measured.
constexpr double kOwnShare = 1.0 / 4, kOtherShare = 1.0 / 128;
/// How fast the time of a hand-over follows what is observed, and its limit: what takes longer was a core that others had.
constexpr double kHandOverShare = 1.0 / 16, kMostHandOver = 200e-6;
/// One product that was held up counts no more than one that took twice the expected time.
constexpr double kMostChange = 2;

}  // namespace

WidthTime WidthTable::for_columns(std::int64_t columns) const {
  const WidthTime& widest = widths_.back();
  if (columns > widest.width)
    return {widest.width, widest.seconds * static_cast<double>((columns + widest.width - 1) / widest.width)};
  std::size_t best = widths_.size() - 1;
  for (std::size_t i = 0; i < widths_.size(); ++i)
    if (widths_[i].width >= columns && measured_[i].seconds < measured_[best].seconds) best = i;
  return widths_[best];
}

const WidthTime& WidthTable::for_waiting(std::int64_t waiting, std::int64_t first) const {
  const WidthTime* best = nullptr;
  double most = 0;
  for (const WidthTime& one : widths_) {
    if (one.width < std::min(first, widest())) continue;
    const double rate = static_cast<double>(std::min(waiting, one.width)) / (one.seconds + hand_over_);
    if (best != nullptr && rate <= most) continue;
    best = &one, most = rate;
  }
  return *best;
}

std::int64_t WidthTable::columns_of_next(std::int64_t waiting, std::int64_t first) const {
  return merging_ == Merging::off ? first : std::max(first, for_waiting(waiting, first).width);
}

double WidthTable::seconds_for(std::int64_t columns) const {
  if (columns == 0 || widths_.empty()) return 0;
  if (merging_ == Merging::off) return (for_columns(1).seconds + hand_over_) * static_cast<double>(columns);
  const WidthTime& one = for_waiting(columns, 1);
  return (one.seconds + hand_over_) * static_cast<double>((columns + one.width - 1) / one.width);
}

void WidthTable::observe(std::int64_t width, double seconds, double whole) {
  hand_over_ += kHandOverShare * (std::clamp(whole - seconds, 0.0, kMostHandOver) - hand_over_);
  const auto same =
      std::find_if(measured_.begin(), measured_.end(), [&](const WidthTime& one) { return one.width == width; });
  if (same == measured_.end()) return;
  const double now = widths_[static_cast<std::size_t>(same - measured_.begin())].seconds / same->seconds;
  const double longer = std::clamp(seconds / same->seconds, now / kMostChange, now * kMostChange);
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    const bool own = measured_[i].width == width;
    widths_[i].seconds += (own ? kOwnShare : kOtherShare) * ((own ? longer : 1) * measured_[i].seconds - widths_[i].seconds);
  }
}

}  // namespace shardmat::serve
