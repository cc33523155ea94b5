#include "tools/bench/service/checks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tools/cli/input_matrix.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr std::size_t kMostNotes = 10;

std::vector<double> numbers(std::span<const std::byte> bytes) {
  std::vector<double> all(bytes.size() / sizeof(double));
  if (!all.empty()) std::memcpy(all.data(), bytes.data(), all.size() * sizeof(double));
  return all;
}

}  // namespace

Truth::Truth(const std::string& matrix) {
  const InputMatrix input = open_input(matrix, false, false);
  rows_ = input.rows->read_rows(0, input.rows->rows());
}

double Truth::residual(std::span<const std::byte> b, std::span<const std::byte> x) const {
  constexpr double kWrong = 2;
  const std::vector<double> right = numbers(b), found = numbers(x);
  if (right.size() != found.size() || static_cast<std::int64_t>(found.size()) != rows_.rows) return kWrong;
  double of_b = 0, of_r = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    double r = right[i];
    for (std::int64_t k = rows_.row_ptr[i]; k < rows_.row_ptr[i + 1]; ++k)
      r -= rows_.values[static_cast<std::size_t>(k)] *
           found[static_cast<std::size_t>(rows_.col_idx[static_cast<std::size_t>(k)])];
    of_b += right[i] * right[i], of_r += r * r;
  }
  const double share = std::sqrt(of_r / of_b);
  return std::isfinite(share) ? share : kWrong;
}

Request solve_request(std::string_view target, std::span<const std::byte> b, const Truth& truth, double most_residual) {
  Request request = numbers_request("POST", target, b);
  request.check = [b, &truth, most_residual](std::span<const std::byte> x) { return truth.residual(b, x) <= most_residual; };
  return request;
}

void Tally::add(const std::string& kind, std::int64_t Counts::*which) {
  const std::lock_guard lock(mutex_);
  ++(counts_[kind].*which);
}

void Tally::wrong(const std::string& kind, const std::string& why) {
  add(kind, &Counts::wrong);
  const std::lock_guard lock(mutex_);
  if (first_.size() < kMostNotes) first_.push_back(fmt::format("{}: {}", kind, why));
}

std::int64_t Tally::count_right(const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second.right;
}

void Tally::take(const Tally& more) {
  const std::scoped_lock lock(mutex_, more.mutex_);
  for (const auto& [kind, counts] : more.counts_) {
    Counts& mine = counts_[kind];
    mine.right += counts.right, mine.refused += counts.refused, mine.wrong += counts.wrong;
  }
  first_.insert(first_.end(), more.first_.begin(), more.first_.end());
}

void Tally::report(Outcome& outcome) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, counts] : counts_) {
    outcome.report(kind + ": right", static_cast<double>(counts.right), Unit::count);
    if (counts.refused > 0)
      outcome.report(kind + ": refused, or lost with the ranks", static_cast<double>(counts.refused), Unit::count);
    outcome.at_most(kind + ": wrong, or never answered", static_cast<double>(counts.wrong), 0, Unit::count);
    for (std::int64_t i = 0; i < counts.right; ++i) outcome.count(200, true);
    for (std::int64_t i = 0; i < counts.wrong; ++i) outcome.count(0, false);
  }
  for (const std::string& note : first_) outcome.note(note);
}

}  // namespace shardmat::tools::service_bench
