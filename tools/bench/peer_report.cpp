#include "tools/bench/peer_report.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "kernels/base/text.h"
#include "tools/bench/result_table.h"

namespace shardmat::tools {
namespace {

using nlohmann::ordered_json;

std::string plural(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string order_name(const RightHandSides& rhs) { return rhs.x == DenseOrder::row_major ? "row" : "column"; }

std::string columns_text(const RightHandSides& rhs) {
  return plural(rhs.count, "column") + (rhs.x == DenseOrder::row_major ? "" : " stored by column");
}

std::string interval_text(const MedianInterval& ratio) { return fmt::format("{:.2f} … {:.2f}", ratio.low, ratio.high); }

Cell milliseconds(double seconds) { return Cell::figure(1e3 * seconds, 1e3 * seconds < 1 ? 4 : 2); }

/// The ratios of one of our kernels in one type with one number of threads and columns.
struct Mean {
  std::string asked;
  ValueType type;
  int threads;
  RightHandSides rhs;
  bool symmetric;
  int cases = 0;
  double logs = 0, lowest = HUGE_VAL;

  double ratio() const { return std::exp(logs / cases); }
};

std::vector<Mean> means_of(const PeerReport& report) {
  std::map<std::tuple<bool, std::string, int, ValueType, DenseOrder, std::int64_t>, Mean> means;
  for (const PeerCase& one : report.cases)
    for (const OwnKernel& own : one.own)
      for (const bool symmetric : {false, true}) {
        const std::optional<PeerRatio>& best = symmetric ? own.best_symmetric : own.best;
        if (!best) continue;
        Mean& mean = means
                         .try_emplace({symmetric, own.asked, one.threads, one.type, one.rhs.x, one.rhs.count},
                                      Mean{own.asked, one.type, one.threads, one.rhs, symmetric})
                         .first->second;
        ++mean.cases, mean.logs += std::log(best->ratio.median), mean.lowest = std::min(mean.lowest, best->ratio.median);
      }
  std::vector<Mean> result;
  for (auto& [key, mean] : means) result.push_back(std::move(mean));
  return result;
}

std::string own_line(const OwnKernel& own) {
  std::string text = fmt::format("  {}{}{}", own.asked, own.asked == own.kernel ? "" : ": " + own.kernel,
                                 own.policy.empty() ? "" : " " + own.policy);
  const auto against = [&](const char* kind, const std::optional<PeerRatio>& best) {
    if (!best) return;
    text += fmt::format("\n    {} {}: {} against our {}, ratio {:.3f} ({:.3f} … {:.3f}, {} pairs)", kind, best->peer,
                        human_seconds(best->peer_seconds), human_seconds(best->own_seconds), best->ratio.median,
                        best->ratio.low, best->ratio.high, best->pairs);
    text += fmt::format("; other programs kept {:.2f} cores busy", best->foreign_cores);
    if (best->repeated > 0) text += fmt::format(", {} measured again", plural(best->repeated, "pair"));
  };
  if (own.wrong > 0) text += fmt::format("\n    WRONG: {} entries", human_count(own.wrong));
  against("best peer", own.best);
  against("best symmetric peer", own.best_symmetric);
  if (!own.share.loop.empty())
    text += fmt::format("\n    {:.0f} % ({:.0f} … {:.0f}) of the rate at which a {} streams memory, {}/s",
                        100 * own.share.share.median, 100 * own.share.share.low, 100 * own.share.share.high, own.share.loop,
                        human_bytes(own.share.rate));
  return text + "\n";
}

ordered_json json_of(const std::optional<PeerRatio>& one) {
  if (!one) return nullptr;
  return {{"peer", one->peer},
          {"peer_s", one->peer_seconds},
          {"own_s", one->own_seconds},
          {"ratio", one->ratio.median},
          {"low", one->ratio.low},
          {"high", one->ratio.high},
          {"coverage", one->ratio.coverage},
          {"pairs", one->pairs},
          {"repeated", one->repeated},
          {"foreign_cores", one->foreign_cores}};
}

ordered_json json_of(const MemoryShare& one) {
  if (one.loop.empty()) return nullptr;
  return {{"loop", one.loop},
          {"bytes_per_s", one.rate},
          {"share", one.share.median},
          {"low", one.share.low},
          {"high", one.share.high}};
}

ordered_json json_of(const PeerCase& one) {
  ordered_json own = ordered_json::array(), peers = ordered_json::array();
  for (const OwnKernel& kernel : one.own)
    own.push_back({{"asked", kernel.asked},
                   {"kernel", kernel.kernel},
                   {"policy", kernel.policy},
                   {"wrong_entries", kernel.wrong},
                   {"best_peer", json_of(kernel.best)},
                   {"best_symmetric_peer", json_of(kernel.best_symmetric)},
                   {"memory_share", json_of(kernel.share)}});
  for (const PeerResult& result : one.peers) {
    ordered_json peer{{"name", result.peer.name},
                      {"heading", result.peer.heading},
                      {"symmetric", result.peer.symmetric},
                      {"detail", result.detail}};
    if (!result.refused.empty()) {
      peer["refused"] = result.refused;
    } else {
      peer["wrong_entries"] = result.wrong;
      peer["median_s"] = result.first.peer_seconds;
      peer["ratio"] = result.first.ratio.median;
    }
    peers.push_back(std::move(peer));
  }
  return {
      {"work", {{"name", one.name}, {"argument", one.argument}, {"rows", one.rows}, {"cols", one.cols}, {"nnz", one.nnz}}},
      {"type", name(one.type)},
      {"threads", one.threads},
      {"rhs", one.rhs.count},
      {"order", order_name(one.rhs)},
      {"ours", own},
      {"peers", peers}};
}

}  // namespace

PeerRatio::PeerRatio(std::string peer_heading, const Pairs& measured)
    : peer(std::move(peer_heading)),
      own_seconds(median_of(measured.ours)),
      peer_seconds(median_of(measured.theirs)),
      ratio(median_interval(measured.ratios())),
      pairs(static_cast<int>(measured.ours.size())),
      repeated(measured.repeated),
      foreign_cores(measured.foreign_cores) {}

std::string header_text(const PeerReport& report) {
  std::string text = report.machine.text();
  text += fmt::format(
      "Each peer is measured in {} pairs with our first kernel; the fastest is measured again, in {} pairs with each "
      "kernel.\n"
      "ratio: median over the pairs of the peer's time over ours, above 1 is faster; with it the interval of 90 %, by "
      "order\n"
      "statistics. One thread: its CPU time. More: wall time. Caches are warm: a product that is not timed goes before.\n"
      "Results are {}.\n",
      (report.repetitions + 1) / 2, report.repetitions,
      report.verified ? "compared with a sequential f64 product, all rows of up to three columns" : "unchecked");
  return text;
}

std::string case_text(const PeerCase& one) {
  std::string text =
      fmt::format("\n{}: {} × {}, {} nonzeros, {}, {}, {}\n", one.name, human_count(one.rows), human_count(one.cols),
                  human_count(one.nnz), name(one.type), plural(one.threads, "thread"), columns_text(one.rhs));
  for (const OwnKernel& own : one.own) text += own_line(own);
  ResultTable table;
  table.columns = {{"peer", "peer"}, {"ms", "ms"}, {"ratio", "ratio"}, {"detail", ""}};
  std::map<std::string, std::vector<std::string>> refused;  // by reason, so that it is said once
  for (const PeerResult& result : one.peers) {
    if (!result.refused.empty()) {
      refused[result.refused].push_back(result.peer.heading);
      continue;
    }
    table.rows.push_back(
        {Cell::word(result.peer.heading), milliseconds(result.first.peer_seconds),
         Cell::figure(result.first.ratio.median, 3),
         Cell::word(result.wrong > 0 ? fmt::format("WRONG: {} entries", human_count(result.wrong)) : result.detail)});
  }
  if (!table.rows.empty()) text += table.text().substr(1);  // without its title
  for (const auto& [why, peers] : refused) text += fmt::format("  not measured: {}: {}\n", fmt::join(peers, ", "), why);
  return text;
}

std::string summary_text(const PeerReport& report) {
  ResultTable table;
  table.title = "\nSummary; symmetric: against the fastest peer that stores half of the matrix";
  table.columns = {{"work", "work"},       {"type", "type"},       {"threads", "threads"}, {"columns", "columns"},
                   {"order", "stored by"}, {"ours", "ours"},       {"ms", "ms"},           {"peer", "best peer"},
                   {"peer_ms", "ms"},      {"ratio", "ratio"},     {"interval", "90 %"},   {"half", "symmetric"},
                   {"half_ms", "ms"},      {"half_ratio", "ratio"}};
  for (const PeerCase& one : report.cases)
    for (const OwnKernel& own : one.own) {
      const auto& best = own.best;
      const auto& half = own.best_symmetric;
      const double own_seconds = best ? best->own_seconds : half ? half->own_seconds : 0;
      table.rows.push_back({Cell::word(one.name), Cell::word(std::string(name(one.type))), Cell::count(one.threads),
                            Cell::count(one.rhs.count), Cell::word(order_name(one.rhs)),
                            Cell::word(own.asked == own.kernel ? own.kernel : own.asked + ": " + own.kernel),
                            own_seconds > 0 ? milliseconds(own_seconds) : Cell::none(), Cell::word(best ? best->peer : "–"),
                            best ? milliseconds(best->peer_seconds) : Cell::none(),
                            best ? Cell::figure(best->ratio.median, 2) : Cell::none(),
                            Cell::word(best ? interval_text(best->ratio) : "–"), Cell::word(half ? half->peer : "–"),
                            half ? milliseconds(half->peer_seconds) : Cell::none(),
                            half ? Cell::figure(half->ratio.median, 2) : Cell::none()});
    }
  std::string text = table.text();
  for (const Mean& mean : means_of(report))
    text += fmt::format("Geometric mean of {}, {}, {}, {}{}: {:.3f}, lowest {:.3f}\n", plural(mean.cases, "ratio"),
                        mean.asked, name(mean.type), plural(mean.threads, "thread") + ", " + columns_text(mean.rhs),
                        mean.symmetric ? ", against symmetric peers" : "", mean.ratio(), mean.lowest);
  for (const std::string& note : report.notes) text += "Note: " + note + ".\n";
  if (const std::int64_t wrong = count_wrong(report)) text += fmt::format("{} of our results are WRONG, see above\n", wrong);
  return text;
}

ordered_json to_json(const PeerReport& report) {
  ordered_json cases = ordered_json::array(), means = ordered_json::array();
  for (const PeerCase& one : report.cases) cases.push_back(json_of(one));
  for (const Mean& mean : means_of(report))
    means.push_back({{"asked", mean.asked},
                     {"type", name(mean.type)},
                     {"threads", mean.threads},
                     {"rhs", mean.rhs.count},
                     {"order", order_name(mean.rhs)},
                     {"symmetric", mean.symmetric},
                     {"cases", mean.cases},
                     {"ratio", mean.ratio()},
                     {"lowest", mean.lowest}});
  return {{"machine", report.machine.json()}, {"bench", report.bench}, {"repetitions", report.repetitions},
          {"verified", report.verified},      {"notes", report.notes}, {"cases", cases},
          {"geometric_means", means}};
}

std::int64_t count_wrong(const PeerReport& report) {
  std::int64_t wrong = 0;
  for (const PeerCase& one : report.cases)
    for (const OwnKernel& own : one.own) wrong += own.wrong > 0;
  return wrong;
}

}  // namespace shardmat::tools
