#include "runtime/service/engine/new_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/base/first_where.h"
#include "kernels/base/memory_limits.h"

namespace shardmat::service {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// Position of the first value that is NaN or infinite.
std::int64_t first_not_finite(std::span<const std::byte> values, ValueType type) {
  return dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const all = reinterpret_cast<const T*>(values.data());
    return first_where(static_cast<std::int64_t>(values.size() / sizeof(T)), 1 << 14,
                       [all](std::int64_t i) { return !std::isfinite(all[i]); })
        .value_or(kNone);
  });
}

}  // namespace

NewValues::NewValues(std::int64_t own, ValueType type, Communicator& communicator)
    : parts_(communicator.all_gather(own)), own_(own), type_(type) {
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (rank == communicator.rank()) begin_ = nnz_;
    nnz_ += parts_[static_cast<std::size_t>(rank)];
  }
}

void NewValues::take(std::int64_t first, std::span<const std::byte> piece, Communicator& communicator) {
  const auto entry = static_cast<std::int64_t>(size_of(type_));
  const std::int64_t end = first + static_cast<std::int64_t>(piece.size()) / entry;
  try {
    communicator.run_agreed([&] {
      if (first == 0) {
        clear();
        require_host_memory(own_ * entry, "new values of a matrix");
        values_.resize(static_cast<std::size_t>(own_ * entry));
        received_ = 0;
      }
      if (first != received_ || end > nnz_ || static_cast<std::int64_t>(piece.size()) % entry != 0)
        throw Error(ErrorKind::internal, fmt::format("values {} to {} of {} came out of their turn", first, end, nnz_));
    });
    const std::int64_t from = std::clamp(first, begin_, begin_ + own_), to = std::clamp(end, begin_, begin_ + own_);
    const auto own = from < to ? piece.subspan(static_cast<std::size_t>((from - first) * entry),
                                               static_cast<std::size_t>((to - from) * entry))
                               : std::span<const std::byte>();
    std::int64_t wrong = first_not_finite(own, type_);
    wrong = communicator.all_reduce(wrong == kNone ? kNone : from + wrong, Reduction::min);
    if (wrong != kNone)
      throw AgreedError(ErrorKind::input,
                        fmt::format("value {} (counted from 0) is not finite; the matrix keeps its values", wrong));
    if (!own.empty()) std::memcpy(values_.data() + (from - begin_) * entry, own.data(), own.size());
    received_ = end;
  } catch (const AgreedError&) {
    clear();
    throw;
  }
}

std::vector<OtherHosts::Range> NewValues::parts_of(std::int64_t first, std::int64_t count) const {
  const auto entry = static_cast<std::int64_t>(size_of(type_));
  std::vector<OtherHosts::Range> parts;
  std::int64_t begin = 0;
  for (const std::int64_t of_rank : parts_) {
    const std::int64_t from = std::clamp(begin - first, std::int64_t{0}, count),
                       to = std::clamp(begin + of_rank - first, std::int64_t{0}, count);
    parts.push_back({static_cast<std::size_t>(from * entry), static_cast<std::size_t>(to * entry)});
    begin += of_rank;
  }
  return parts;
}

ConstDense NewValues::own() const {
  ConstDense values;
  values.data = values_.data(), values.rows = own_, values.type = type_;
  return values;
}

void NewValues::clear() {
  values_ = {};
  received_ = -1;
}

}  // namespace shardmat::service
