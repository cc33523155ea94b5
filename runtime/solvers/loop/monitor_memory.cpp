#include "runtime/solvers/loop/monitor_memory.h"

#include <algorithm>

namespace shardmat {
namespace {

constexpr std::int64_t kHistoryEntries = 1024;

}  // namespace

MonitorMemory::MonitorMemory(Device device, int columns, std::int64_t restart, bool coefficients)
    : columns_(columns),
      history_length_(std::max<std::int64_t>(2 * restart, std::max<std::int64_t>(64, kHistoryEntries / columns))),
      coefficients_(coefficients) {
  const std::int64_t lists = coefficients ? 3 : 1;
  const std::size_t bytes = offset(kHistory) + static_cast<std::size_t>(lists * history_length_ * columns) * sizeof(double);
  require_memory(device, static_cast<std::int64_t>(bytes), "the history of residuals");
  memory_ = Buffer(device, bytes);
  copy_.reserve(bytes, device, device.backend == Backend::cuda);
  std::fill_n(copy_.as<char>(), bytes, char{0});
}

krylov::Monitor MonitorMemory::view() const {
  krylov::Monitor m;
  m.columns = columns_;
  m.history_length = history_length_;
  m.converged_below = device<double>(kBelow);
  m.diverged_above = device<double>(kAbove);
  m.most_iterations = device<std::int64_t>(kMost);
  m.norm = device<double>(kNorm);
  m.iterations = device<std::int64_t>(kIterations);
  m.reason = device<krylov::Reason>(kReason);
  m.history = device<double>(kHistory);
  if (coefficients_) m.coefficients = m.history + history_length_ * columns_;
  return m;
}

void MonitorMemory::set(const std::vector<krylov::Reason>& reasons, const std::vector<double>& below,
                        const std::vector<double>& above, bool from_zero, Stream& stream) {
  std::copy(reasons.begin(), reasons.end(), host<krylov::Reason>(kReason));
  std::copy(below.begin(), below.end(), host<double>(kBelow));
  std::copy(above.begin(), above.end(), host<double>(kAbove));
  std::fill_n(host<std::int64_t>(kMost), columns_, most_iterations_);
  if (from_zero) std::fill_n(host<std::int64_t>(kIterations), columns_, std::int64_t{0});
  copy_to_device(memory_.data(), copy_.data(), offset(kHistory), stream);
}

void MonitorMemory::look_without_history(Stream& stream) {
  copy_to_host(copy_.data(), memory_.data(), offset(kHistory), stream);
}

void MonitorMemory::look(Stream& stream) { copy_to_host(copy_.data(), memory_.data(), memory_.bytes(), stream); }

}  // namespace shardmat
