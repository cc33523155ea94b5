#include "tools/bench/scaling_notes.h"

#include <fmt/format.h>

#include <sstream>

#include "kernels/base/text.h"

namespace shardmat::tools {
namespace {

constexpr double kUnsteady = 2;    ///< the median over the shortest iteration
constexpr double kLonger = 1.1;    ///< the product alone over an iteration with it
constexpr double kPerfect = 1.1;   ///< an efficiency above wants a reason
constexpr double kSameWork = 0.9;  ///< nonzeros a rank over those of the baseline, weak scaling
constexpr double kCached = 1.1;    ///< bytes a second of the product over those of a copy that no cache holds

bool is_unsteady(const IterationTimes& times) { return times.median > kUnsteady * times.min; }

std::string range(const IterationTimes& times) {
  return fmt::format("shortest {}, median {}, longest {}", human_seconds(times.min), human_seconds(times.median),
                     human_seconds(times.max));
}

/// The product's bytes a second over those of a copy.
double of_copy(const MultiplyReport& r) { return r.copy_bandwidth.mean > 0 ? r.bandwidth.mean / r.copy_bandwidth.mean : 0; }

double nonzeros_a_rank(const ScalingCase& one) { return static_cast<double>(one.report.nnz) / one.ranks; }

/// Why a case is faster than perfect scaling from `base`.
std::string why_so_fast(const ScalingCase& one, const ScalingCase& base) {
  const int threads = one.report.threads_per_rank, base_threads = base.report.threads_per_rank;
  if (is_unsteady(base.report.iteration))
    return fmt::format(
        "the baseline on {} was disturbed ({}); measure again on a machine without other work, with more "
        "--iterations",
        counted(base.ranks, "rank"), range(base.report.iteration));
  if (base.report.local.of_ranks.max > kLonger * base.iteration() || base.host_ranks * base_threads > base.host_cores)
    return fmt::format("the baseline on {} is doubtful, see its note", counted(base.ranks, "rank"));
  if (threads > base_threads)
    return fmt::format("its ranks have {} each, those of the baseline {}", counted(threads, "thread"), base_threads);
  if (one.weak() && nonzeros_a_rank(one) < kSameWork * nonzeros_a_rank(base))
    return fmt::format("a rank has {:.1f} % fewer nonzeros than one of the baseline, so that its work is less",
                       100 * (1 - nonzeros_a_rank(one) / nonzeros_a_rank(base)));
  if (of_copy(one.report) > kCached && of_copy(one.report) > kCached * of_copy(base.report))
    return fmt::format(
        "a cache probably holds its parts but not those of the baseline: the product moves its bytes at "
        "{:.0f} % of the copy bandwidth, there at {:.0f} %",
        100 * of_copy(one.report), 100 * of_copy(base.report));
  return "the baseline was probably disturbed, or ran at lower clocks; measure again with more --iterations";
}

}  // namespace

std::vector<std::string> notes_of(const ScalingCase& one, const ScalingCase& base) {
  const MultiplyReport& r = one.report;
  std::vector<std::string> notes;
  if (one.host_ranks * r.threads_per_rank > one.host_cores && r.backend == "host")
    notes.push_back(fmt::format(
        "{} with {} each share {} of a host: they take turns, so that the times tell little of "
        "ranks with cores of their own",
        counted(one.host_ranks, "rank"), counted(r.threads_per_rank, "thread"), counted(one.host_cores, "core")));
  if (is_unsteady(r.iteration))
    notes.push_back(
        fmt::format("unsteady iterations ({}): other work or changing clocks disturbed them", range(r.iteration)));
  if (r.local.of_ranks.max > kLonger * one.iteration())
    notes.push_back(
        fmt::format("the product alone took {}, longer than an iteration with it ({}): the machine was "
                    "disturbed while one of them was timed. The product counts as long as the iteration",
                    human_seconds(r.local.of_ranks.max), human_seconds(one.iteration())));
  if (one.efficiency > kPerfect)
    notes.push_back(fmt::format("{:.1f} % of perfect scaling: {}", 100 * one.efficiency, why_so_fast(one, base)));
  return notes;
}

std::string counted(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string result, line(indent, ' ');
  bool empty = true;
  for (std::string word; words >> word; empty = false) {
    if (!empty && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line.assign(indent + 4, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
  }
  return result + line + "\n";
}

}  // namespace shardmat::tools
