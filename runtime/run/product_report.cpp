#include "runtime/run/product_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/communicator.h"
#include "comm/exchange/exchange.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/load_part.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/run/report_parts.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

void describe_kernels(const Product& p, ProductReport& r) {
  const DistributedMatrix& matrix = p.matrix();
  Communicator& ranks = matrix.context().communicator();
  const RowPlan& first = p.row_plans()[0];
  r.kernel = first.kernel(), r.format = first.storage().format, r.policy = first.tunables(), r.kernel_why = first.why();
  r.predictions = first.predictions();
  r.measurements = first.measurements();
  r.decision = name(first.decision());
  r.choosing_products = first.choosing_products();
  std::string kernels;
  bool reproducible = true;
  for (const RowPlan& plan : p.row_plans()) {
    if (const std::string kernel = plan.kernel_and_tunables(); kernels != kernel)
      kernels += (kernels.empty() ? "" : "; ") + kernel;
    reproducible = reproducible && plan.reproducible();
  }
  r.kernel_of_rank = ranks.all_gather(kernels);
  r.reproducible = ranks.all_reduce(reproducible ? 1 : 0, Reduction::min) == 1;
  r.choosing = over_ranks(p.choosing_seconds(), ranks);
  const double nnz = std::max<double>(1, static_cast<double>(matrix.local_nnz()));
  r.overlapped = over_ranks(static_cast<double>(p.overlapped_nnz) / nnz, ranks);
  for (const std::string& why : ranks.all_gather(p.why_rows_wait))
    if (r.why_rows_wait.empty()) r.why_rows_wait = why;
}

}  // namespace

void describe_product(const Product& p, const MatrixSource& source, const LoadOptions& options, ProductReport& r) {
  const DistributedMatrix& m = p.matrix();
  const Context& context = m.context();
  Communicator& ranks = context.communicator();
  r.matrix = source.rows->name();
  r.access = source.access;
  r.type = name(m.type());
  r.right_hand_sides = p.columns();
  r.rows = m.rows(), r.cols = m.cols(), r.nnz = m.nnz();
  r.backend = name(context.device().backend), r.backend_why = context.placement().why;
  r.ranks = context.placement().ranks;
  r.threads_per_rank = thread_count();
  r.partition_method = options.method;
  r.partition_origin = m.partition_origin();
  r.node_block_size = m.node_block_size(), r.node_block_origin = m.node_block_origin();
  r.nodes_are_whole = m.nodes_are_whole();
  const std::string stored = order_text(source);
  r.sort = m.local_sort() != LocalSort::by_length ? stored
           : stored == "no"                       ? "locally, by length"
                                                  : stored + ", then locally";
  r.part_rows = over_ranks(static_cast<double>(m.local_rows()), ranks);
  r.part_nnz = over_ranks(static_cast<double>(m.local_nnz()), ranks);
  r.symmetry_difference = m.symmetry_difference();
  r.imbalance = r.part_nnz.mean > 0 ? r.part_nnz.max / r.part_nnz.mean : 1;
  describe_kernels(p, r);
  r.exchange = p.exchange().name(), r.exchange_why = p.exchange().why();
  r.exchange_bytes = over_ranks(static_cast<double>(p.bytes_received()), ranks);
  const Communicator::Sent sent = p.exchange().sent_to_other_hosts();
  const std::int64_t blocks = p.columns() / p.column_block();
  r.bytes_to_other_hosts = over_ranks(static_cast<double>(blocks * sent.bytes), ranks);
  r.messages_to_other_hosts = over_ranks(static_cast<double>(blocks * sent.messages), ranks);
  r.column_block = p.column_block(), r.column_block_why = p.why_column_block;
}

void add_load_phases(const LoadTimes& times, Communicator& communicator, std::vector<Phase>& phases) {
  for (const auto& [name, seconds] : {std::pair{"partition", times.partition}, std::pair{"load rows", times.read},
                                      std::pair{"set up exchange", times.exchange}, std::pair{"convert, tune", times.plan}})
    phases.push_back({name, over_ranks(seconds, communicator)});
}

namespace reporting {

using nlohmann::ordered_json;

namespace {

/// What was measured beside what the model expected, both as multiples of the best.
void write_candidates(Table& t, const ProductReport& r) {
  const auto expected = [&](const Measurement& m) -> std::string {
    for (const Prediction& p : r.predictions)
      if (p.kernel == m.kernel && p.policy == m.policy && std::isfinite(p.bytes))
        return fmt::format("{:.2f}", p.bytes / r.predictions.front().bytes);
    return "–";
  };
  if (!r.measurements.empty()) {
    t.section("Kernels measured (rank 0)   times the best, predicted");
    for (const Measurement& m : r.measurements)
      t.line(fmt::format("  {:>10} {:>14.2f} {:>10}  {} {}", human_seconds(m.seconds),
                         m.seconds / r.measurements.front().seconds, expected(m), m.kernel, m.policy));
  } else if (!r.predictions.empty()) {
    t.section("Kernels predicted (rank 0), times the best");
    for (const Prediction& p : r.predictions)
      if (std::isfinite(p.bytes))
        t.line(fmt::format("  {:>10.2f}  {} {}", p.bytes / r.predictions.front().bytes, p.kernel, p.policy));
  }
}

/// Empty if nodes have one unknown.
std::string nodes_text(const ProductReport& r) {
  if (r.node_block_size == 1) return {};
  return fmt::format("{} unknowns each ({}); {}", r.node_block_size, r.node_block_origin,
                     r.nodes_are_whole ? "each node is on one rank"
                     : r.partition_origin == "stored in the file"
                         ? "the stored partition cuts nodes, so block_jacobi takes blocks of 1. Partition the file anew"
                         : "parts cut nodes, so block_jacobi takes blocks of 1");
}

/// Empty if nothing moves.
std::string overlap_text(const ProductReport& r) {
  const std::string& why = r.why_rows_wait;
  if (r.exchange_bytes.max == 0) return {};
  if (r.overlapped.max == 0) return why.empty() ? why : "no rows: " + why;
  return fmt::format("{} of the nonzeros are multiplied while x moves, {}", min_mean_max(r.overlapped, percent_text),
                     why.empty() ? "the others need x of other ranks" : "the others wait: " + why);
}

}  // namespace

void write_setup(Table& t, const ProductReport& r) {
  t.section(fmt::format("Matrix {}", r.matrix));
  t.row("shape",
        fmt::format("{} × {}, {}, {}", human_count(r.rows), human_count(r.cols), human_count(r.nnz, "nonzero"), r.type));
  if (r.right_hand_sides > 1) t.row("X and Y", fmt::format("{} columns, row-major", human_count(r.right_hand_sides)));
  if (r.symmetry_difference > 0)
    t.row("symmetry",
          fmt::format("within rounding: a_ij and a_ji differ by up to {:.2g} (relative), and both became their mean",
                      r.symmetry_difference));
  t.row("read by", r.access);
  t.row("parts",
        fmt::format("{} by {} ({}), rows sorted: {}", r.ranks.size(), r.partition_method, r.partition_origin, r.sort));
  t.row("nodes", nodes_text(r));
  t.row("nnz a part", fmt::format("{}, imbalance {:.4f}", min_mean_max(r.part_nnz, count_text), r.imbalance));
  t.row("rows a part", min_mean_max(r.part_rows, count_text));
  t.section("Ranks");
  for (std::size_t i = 0; i < r.ranks.size(); ++i)
    t.row(fmt::format("rank {}", i),
          fmt::format("{}  {}{}{}", r.ranks[i].host, r.ranks[i].device, r.ranks[i].id.empty() ? "" : "  ",
                      r.ranks[i].id.empty() ? fmt::format(" × {} threads", r.threads_per_rank) : r.ranks[i].id));
  t.section("Choices");
  t.row("backend", fmt::format("{} ({})", r.backend, r.backend_why));
  const std::string kernel = r.policy.empty() ? r.kernel : r.kernel + " " + r.policy;
  t.row("kernel", fmt::format("{} ({})", kernel, r.kernel_why));
  if (std::any_of(r.kernel_of_rank.begin(), r.kernel_of_rank.end(), [&](const auto& k) { return k != kernel; }))
    for (std::size_t i = 0; i < r.kernel_of_rank.size(); ++i) t.row(fmt::format("  rank {}", i), r.kernel_of_rank[i]);
  if (r.decision == "measured" || r.decision == "remembered")
    t.row("choosing", fmt::format("{}{}", min_mean_max(r.choosing, human_seconds),
                                  r.choosing_products > 0 ? fmt::format(" = {:.3g} products", r.choosing_products) : ""));
  t.row("exchange", fmt::format("{} ({}{}); {} received a rank", r.exchange,
                                r.column_block_why.empty() ? "" : "of each column block: ", r.exchange_why,
                                min_mean_max(r.exchange_bytes, human_bytes)));
  if (r.bytes_to_other_hosts.max > 0)
    t.row("to other hosts", fmt::format("{} a rank", min_mean_max(r.bytes_to_other_hosts, human_bytes)));
  if (!r.column_block_why.empty())
    t.row("column blocks",
          fmt::format("{} of {} right-hand sides at a time ({})", r.column_block, r.right_hand_sides, r.column_block_why));
  t.row("overlap", overlap_text(r));
  t.row("reproducible", r.reproducible ? "yes, bit for bit with these kernels, this exchange and number of ranks"
                                       : "no, a kernel adds in varying order");
  if (r.graph) t.row("replay", "iterations replayed from a CUDA graph");
  write_candidates(t, r);
}

void write_phases(Table& t, const std::vector<Phase>& phases) {
  t.section("Time over ranks           min        mean         max");
  for (const Phase& p : phases)
    t.line(fmt::format("  {:<16} {:>11} {:>11} {:>11}", p.name, human_seconds(p.seconds.min), human_seconds(p.seconds.mean),
                       human_seconds(p.seconds.max)));
}

void write_iteration(Table& t, const IterativeReport& r) {
  const auto share = [&](double seconds) {
    return fmt::format("{} ({:.0f} %)", human_seconds(seconds), 100 * seconds / r.seconds_an_iteration);
  };
  t.section("An iteration, on average");
  t.row("time", human_seconds(r.seconds_an_iteration));
  t.row("  product", share(r.product_seconds));
  if (r.ranks.size() > 1) t.row("  exchange", share(r.exchange_seconds));
  const double rest = r.seconds_an_iteration - r.product_seconds - r.exchange_seconds;
  if (rest > 0) t.row("  the rest", share(rest) + ": vectors, sums");
}

ordered_json json_of_matrix(const ProductReport& r) {
  ordered_json j{{"name", r.matrix}, {"rows", r.rows}, {"cols", r.cols},
                 {"nnz", r.nnz},     {"type", r.type}, {"access", r.access}};
  if (r.symmetry_difference > 0) j["symmetry_difference"] = r.symmetry_difference;
  return j;
}

ordered_json json_of_partition(const ProductReport& r) {
  return {{"parts", r.ranks.size()},
          {"method", r.partition_method},
          {"origin", r.partition_origin},
          {"sort", r.sort},
          {"node_block_size", r.node_block_size},
          {"node_block_origin", r.node_block_origin},
          {"nodes_are_whole", r.nodes_are_whole},
          {"rows", json(r.part_rows)},
          {"nnz", json(r.part_nnz)},
          {"imbalance", r.imbalance}};
}

ordered_json json_of_ranks(const ProductReport& r) {
  ordered_json ranks = ordered_json::array();
  for (std::size_t i = 0; i < r.ranks.size(); ++i) {
    ranks.push_back({{"rank", i},
                     {"host", r.ranks[i].host},
                     {"device", r.ranks[i].device},
                     {"id", r.ranks[i].id},
                     {"rows", std::llround(r.part_rows.each[i])},
                     {"nnz", std::llround(r.part_nnz.each[i])},
                     {"overlapped", r.overlapped.each[i]},
                     {"kernel", r.kernel_of_rank[i]}});
  }
  return ranks;
}

ordered_json json_of_kernel(const ProductReport& r) {
  ordered_json predictions = ordered_json::array();
  for (const Prediction& p : r.predictions)
    predictions.push_back({{"kernel", p.kernel}, {"policy", p.policy}, {"bytes", number(p.bytes)}});
  return {{"name", r.kernel},
          {"format", r.format},
          {"policy", r.policy},
          {"decision", r.decision},
          {"why", r.kernel_why},
          {"reproducible", r.reproducible},
          {"choosing_s", json(r.choosing)},
          {"choosing_products", r.choosing_products},
          {"predictions", predictions},
          {"measurements", json(r.measurements)}};
}

ordered_json json_of_exchange(const ProductReport& r) {
  return {{"name", r.exchange},
          {"why", r.exchange_why},
          {"bytes_received", json(r.exchange_bytes)},
          {"bytes_to_other_hosts", json(r.bytes_to_other_hosts)},
          {"messages_to_other_hosts", json(r.messages_to_other_hosts)},
          {"overlapped", json(r.overlapped)},
          {"why_rows_wait", r.why_rows_wait},
          {"column_block", r.column_block},
          {"column_block_why", r.column_block_why},
          {"graph", r.graph}};
}

ordered_json json_of_phases(const std::vector<Phase>& phases) {
  ordered_json all = ordered_json::object();
  for (const Phase& p : phases) all[p.name] = json(p.seconds);
  return all;
}

}  // namespace reporting
}  // namespace shardmat
