#include "runtime/shared_gpu/solve_news.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace shardmat {
namespace {

using Number = std::atomic<std::uint64_t>;
static_assert(Number::is_always_lock_free && sizeof(Number) == sizeof(std::uint64_t));

// The board: how often it was written, odd while it is written; the iterations; the norm of each column.
constexpr std::size_t kHead = 2;

Number* numbers_of(const GroupOperand& operand) { return reinterpret_cast<Number*>(operand.data); }

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double value_of(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Operand zeros(std::size_t bytes) {
  return {bytes, [bytes](void* to) { std::memset(to, 0, bytes); }, {}};
}

}  // namespace

Operand SolveNews::board(bool owner) const {
  return zeros(owner ? (kHead + static_cast<std::size_t>(columns_)) * sizeof(Number) : 0);
}

Operand SolveNews::wish() const { return zeros(sizeof(Number)); }

SolveControl SolveNews::control_of_owner(const RankGroup& group, const GroupOperand& board,
                                         const GroupOperand& wishes) const {
  SolveControl made = control_;
  Number* const to = numbers_of(board);
  made.monitor = [this, to](std::int64_t iterations, const std::vector<double>& norms,
                            const std::vector<double>& true_norms) {
    const std::uint64_t written = to[0].load();
    to[0].store(written + 1);
    to[1].store(static_cast<std::uint64_t>(iterations));
    for (std::size_t k = 0; k < norms.size(); ++k) to[kHead + k].store(bits_of(norms[k]));
    to[0].store(written + 2);
    if (control_.monitor) control_.monitor(iterations, norms, true_norms);
  };
  Number* const asked = numbers_of(wishes);
  made.stop = [this, &group, asked] {
    for (int place = 1; place < group.size(); ++place)
      if (asked[place].load() != 0) return true;
    return group.lost_a_feeder() || (control_.stop && control_.stop());
  };
  return made;
}

void SolveNews::read(const GroupOperand& board, const GroupOperand& wishes, int place) noexcept {
  Number* const from = numbers_of(board);
  const std::uint64_t written = from[0].load();
  if (written == seen_ || written % 2 == 1 || error_ != nullptr) return;
  try {
    const auto iterations = static_cast<std::int64_t>(from[1].load());
    std::vector<double> norms;
    for (std::size_t k = 0; k < static_cast<std::size_t>(columns_); ++k) norms.push_back(value_of(from[kHead + k].load()));
    if (from[0].load() != written) return;  // it was written meanwhile
    seen_ = written;
    if (control_.monitor) control_.monitor(iterations, norms, {});
    if (control_.stop && control_.stop()) numbers_of(wishes)[place].store(1);
  } catch (...) {
    error_ = std::current_exception();
    numbers_of(wishes)[place].store(1);
  }
}

SolveResult SolveNews::checked(SolveResult result) const {
  if (error_ != nullptr) std::rethrow_exception(error_);
  return result;
}

}  // namespace shardmat
