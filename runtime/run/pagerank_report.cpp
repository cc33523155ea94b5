#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/text.h"
#include "runtime/run/pagerank.h"
#include "runtime/run/report_parts.h"

namespace shardmat {
namespace {

using namespace reporting;
using nlohmann::ordered_json;

constexpr std::size_t kMostColumns = 32;  ///< in the text; the JSON has all

std::string seed_text(const PageRankReport& r, std::size_t j) { return r.seeds.empty() ? "–" : std::to_string(r.seeds[j]); }

void write_columns(Table& t, const PageRankReport& r) {
  const auto& columns = r.result.columns;
  if (columns.size() == 1) {
    t.row("converged", columns[0].converged ? "yes" : "no");
    t.row("iterations", human_count(columns[0].iterations));
    t.row("residual", fmt::format("{:.3e}, the L1 norm of the last iteration's change", columns[0].change));
    return;
  }
  t.line("  column        seed  iterations      residual  converged");
  for (std::size_t j = 0; j < std::min(columns.size(), kMostColumns); ++j)
    t.line(fmt::format("  {:>6}  {:>10}  {:>10}  {:>12.3e}  {}", j, seed_text(r, j), human_count(columns[j].iterations),
                       columns[j].change, columns[j].converged ? "yes" : "no"));
  if (columns.size() > kMostColumns) t.line(fmt::format("  … and {} more", columns.size() - kMostColumns));
}

void write_top(Table& t, const PageRankReport& r) {
  if (r.top.empty() || r.top[0].empty()) return;
  for (std::size_t j = 0; j < std::min(r.top.size(), kMostColumns); ++j) {
    const std::string of = r.top.size() == 1 ? "" : fmt::format(" of column {}", j);
    t.section("Highest scores" + of);
    t.line("   place      vertex         score");
    for (std::size_t i = 0; i < r.top[j].size(); ++i)
      t.line(fmt::format("  {:>6}  {:>10}  {:>12.6e}", i + 1, r.top[j][i].index, r.top[j][i].value));
  }
}

ordered_json json_of_columns(const PageRankReport& r) {
  ordered_json columns = ordered_json::array();
  for (std::size_t j = 0; j < r.result.columns.size(); ++j) {
    const RankedColumn& c = r.result.columns[j];
    ordered_json top = ordered_json::array(), history = ordered_json::array();
    for (const TopEntry& entry : r.top[j]) top.push_back({{"vertex", entry.index}, {"score", number(entry.value)}});
    for (const double change : c.history) history.push_back(number(change));
    ordered_json column{{"converged", c.converged},
                        {"iterations", c.iterations},
                        {"residual", number(c.change)},
                        {"top", top},
                        {"history", history}};
    if (!r.seeds.empty()) column["seed"] = r.seeds[j];
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string to_text(const PageRankReport& r) {
  Table t;
  write_setup(t, r);
  t.section("Random walk");
  t.row("steps", fmt::format("goes on with probability {:g}, by {}", r.settings.damping,
                             r.unweighted ? "edges, each of weight 1" : "the weights of edges"));
  t.row("restarts", r.personalisation == "seeds"
                        ? fmt::format("at {}, a column each", human_count(std::ssize(r.seeds), "seed"))
                        : r.personalisation);
  t.row("dangling", human_count(r.dangling, "vertex", "vertices") + " without outgoing weight; walks restart there");
  t.row("ends at", fmt::format("a change of {:g} in the L1 norm, or {} iterations", r.settings.tolerance,
                               human_count(r.settings.max_iterations)));
  t.row("sums", r.sums == "none" ? "" : "formed over the ranks by " + r.sums);
  write_phases(t, r.phases);
  if (r.result.iterations > 0) write_iteration(t, r);
  t.row("memory a rank", fmt::format("{} for matrix and vectors; {} peak of the process",
                                     min_mean_max(r.device_bytes, human_bytes), human_bytes(r.host_peak_bytes.max)));
  t.section("Result");
  write_columns(t, r);
  if (r.result.interrupted) t.row("interrupted", "the run was told to end; scores are as far as they came");
  if (!r.output.empty()) t.row("written", r.output);
  write_top(t, r);
  return t.text();
}

std::string to_json(const PageRankReport& r) {
  ordered_json j{{"matrix", json_of_matrix(r)},
                 {"pagerank",
                  {{"damping", r.settings.damping},
                   {"tolerance", r.settings.tolerance},
                   {"max_iterations", r.settings.max_iterations},
                   {"weights", r.unweighted ? "ones" : "values"},
                   {"personalisation", r.personalisation}}},
                 {"dangling", r.dangling},
                 {"converged", r.result.converged()},
                 {"interrupted", r.result.interrupted},
                 {"iterations", r.result.iterations},
                 {"columns", json_of_columns(r)}};
  add_json_of_run(r, r.result.seconds, j);
  return j.dump(2) + "\n";
}

}  // namespace shardmat
