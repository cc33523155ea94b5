#include "tools/cli/order_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/source/ordered_source.h"
#include "tools/cli/forecast.h"
#include "tools/cli/progress_bar.h"

namespace shardmat::tools {
namespace {

/// What an order must save to be taken in a simpler one's place: less is within the error of the model.
constexpr double kWorthwhile = 0.01;

struct Candidate {
  RowOrder order;
  RanksForecast cut;
};

PerformanceModel links_alike(const std::string& study) {
  PerformanceModel model = study.empty() ? h200_model() : read_study(study).front().model;
  if (model.exchanges.empty())
    throw Error(
        ErrorKind::input,
        fmt::format("{} was measured on one rank and knows no exchange; run shardmat bench scaling on 2 ranks or more",
                    study));
  model.measured_ranks = std::numeric_limits<int>::max();
  return model;
}

std::string title_of(RowOrder order) { return order == RowOrder::as_source ? "as it comes" : std::string(name(order)); }

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 && part >= 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole))
                                : "-";
}

std::string times(std::int64_t halo, std::int64_t before) {
  return before > 0 ? fmt::format("{:.2f} ×", static_cast<double>(halo) / static_cast<double>(before)) : "-";
}

/// Cut alike, in another order.
const Candidate* in_order(const std::vector<Candidate>& all, RowOrder order, const RanksForecast& cut) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& c) {
    return c.order == order && c.cut.method == cut.method && c.cut.ranks == cut.ranks;
  });
  return found == all.end() ? nullptr : &*found;
}

/// What sorting rows by length costs: Okada, Okamoto and Imamura sort them before they are split between GPUs.
std::string sorting(const std::vector<Candidate>& all, const RanksForecast& cut) {
  const Candidate* const source = in_order(all, RowOrder::as_source, cut);
  const Candidate* const sorted = in_order(all, RowOrder::by_length, cut);
  if (source == nullptr || sorted == nullptr) return {};
  const double change = sorted->cut.forecast.iteration / source->cut.forecast.iteration - 1;
  return fmt::format(
      "  sorting by length on {} parts, by {}: --sort global needs {} → {} entries of others, {} an iteration;\n"
      "  --sort local moves rows within their part: halo and boundary stay, whatever the order. What sorted rows gain a\n"
      "  kernel is not foretold: shardmat multiply --sort local measures it\n",
      cut.ranks, cut.method, human_count(source->cut.quality.halo_max), human_count(sorted->cut.quality.halo_max),
      human_change(change));
}

std::string table_of(const std::vector<Candidate>& all, const Candidate& chosen, const OrderChoices& choices) {
  std::string text =
      "Orders                     nonzeros a part                entries of x received by a part       predicted\n"
      "    order        method  parts          max  imbalance     halo max    change  from parts  boundary    exchange   "
      "iteration\n";
  for (const int parts : choices.parts)
    for (const Candidate& c : all) {
      if (c.cut.ranks != parts) continue;
      const PartitionQuality& q = c.cut.quality;
      const Candidate* const source = in_order(all, RowOrder::as_source, c.cut);
      const bool taken = c.order == chosen.order && c.cut.method == chosen.cut.method;
      text += fmt::format("  {} {:<12} {:<6} {:>6} {:>12} {:>10.4f} {:>12} {:>9} {:>11} {:>9} {:>11} {:>11}\n",
                          taken ? '*' : ' ', title_of(c.order), c.cut.method, parts, human_count(q.nnz_max), q.imbalance,
                          human_count(q.halo_max), source != nullptr ? times(q.halo_max, source->cut.quality.halo_max) : "-",
                          human_count(q.neighbours_max), percent(q.boundary_nnz_max, q.nnz_max),
                          human_seconds(c.cut.forecast.exchange), human_seconds(c.cut.forecast.iteration));
    }
  return text;
}

}  // namespace

OrderChoice choose_order(const RowSource& source, const OrderChoices& choices) {
  const PerformanceModel model = links_alike(choices.model);
  const Progress progress = make_progress_bar();
  require_host_memory(72 * source.rows() + 24 * kSliceEntries, "comparing orders of the rows");
  const HostVector<std::int64_t> row_ptr = read_row_pointers(source, progress);
  OrderChoice choice;
  std::optional<Candidate> best;
  std::vector<Candidate> all;
  std::string left_out;
  for (const RowOrder order : choices.orders) {
    try {
      auto rows = make_ordered_source(source, row_ptr, order, choices.parts.back(), choices.allow_nonfinite, progress);
      for (const RanksForecast& cut : forecast_ranks(model, rows ? *rows : source, choices.methods, choices.parts)) {
        all.push_back({order, cut});
        if (cut.ranks != choices.parts.back()) continue;
        if (!best || cut.forecast.iteration < (1 - kWorthwhile) * best->cut.forecast.iteration) best = all.back();
      }
      if (best->order == order) choice.rows = std::move(rows);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resources || order == choices.orders.front()) throw;
      left_out += fmt::format("  without {}: {}\n", title_of(order), e.what());
    }
  }
  choice.method = best->cut.method;
  choice.table = table_of(all, *best, choices);
  choice.table += fmt::format("  * least on {} parts, or within 1 % of it and simpler\n", choices.parts.back()) + left_out;
  choice.table += sorting(all, best->cut);
  choice.table += fmt::format(
      "  {}\n  as measured {}; the same between any two parts and in every order\n", describe(model),
      choices.model.empty() ? "on NVIDIA H200 with NVLink (--model STUDY for your machine)" : "in " + choices.model);
  return choice;
}

}  // namespace shardmat::tools
