#include "tools/serve/observe/metrics.h"

#include "tools/serve/observe/process_figures.h"
#include "tools/serve/observe/rank_bytes.h"
#include "tools/serve/observe/watched.h"
#include "tools/serve/words/log.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

/// Matrices with a label of their own; further ones share one.
constexpr std::size_t kMostNames = 1000;

const std::vector<double>& second_bounds() {
  static const std::vector<double> bounds = [] {
    std::vector<double> all;
    for (double decade = 1e-5; decade < 50; decade *= 10)
      for (const double step : {1.0, 2.5, 5.0}) all.push_back(step * decade);
    return all;
  }();
  return bounds;
}

/// True if a request was not done because of limits, rights or the state of the service.
bool is_rejected(int status) {
  return status == 401 || status == 403 || status == 408 || status == 413 || status == 421 || status == 429 ||
         status == 431 || status == 503 || status == 504 || status == 507;
}

}  // namespace

Metrics::PerMatrix::PerMatrix()
    : queue_seconds(second_bounds()), batch_columns({1, 2, 4, 8, 16, 32, 64}), product_seconds(second_bounds()) {}

std::string Metrics::label_of(const std::string& matrix) {
  if (matrices_.contains(matrix)) return matrix;
  if (service_.find(matrix) == nullptr) return "";
  return matrices_.size() < kMostNames ? matrix : "other";
}

void Metrics::add(const RequestRecord& request) {
  const std::string op = request.head.op.empty() ? "none" : request.head.op;
  const std::string matrix = request.head.matrix.empty() ? "" : label_of(request.head.matrix);
  ++requests_[{matrix, op, request.status}];
  request_seconds_.try_emplace(op, second_bounds()).first->second.add(request.seconds);
  if (is_rejected(request.status) && !request.code.empty()) ++rejected_[request.code];
  if ((op != "multiply" && op != "infer") || matrix.empty()) return;
  PerMatrix& mine = per_matrix(matrix);
  mine.totals.last = seconds_since_1970();
  if (!request.times) {
    ++mine.totals.failed;
    mine.totals.failed_seconds += request.seconds;
    return;
  }
  const ProductTimes& times = *request.times;
  mine.queue_seconds.add(times.queue);
  ++mine.totals.requests;
  mine.totals.columns += static_cast<std::uint64_t>(times.own_columns);
  mine.totals.seconds += request.seconds;
  mine.totals.queue += times.queue, mine.totals.product += times.product;
  mine.totals.copy_in += times.copy_in, mine.totals.copy_out += times.copy_out;
}

void Metrics::add(const FinishedProduct& product) {
  for (const auto& [client, seconds] : product.client_seconds) client_seconds_[client] += seconds;
  copied_in_ += product.x_bytes, copied_out_ += product.y_bytes;
  batches_ += static_cast<std::uint64_t>(product.batches), batch_products_ += product.batches > 0 ? 1 : 0;
  if (product.columns == 0) return;
  PerMatrix& mine = per_matrix(label_of(product.matrix));
  ++mine.totals.products;
  const Matrix* matrix = service_.find(product.matrix);
  if (matrix != nullptr && matrix->is_loaded()) mine.totals.bytes += moved_bytes(*matrix, product);
  mine.batch_columns.add(static_cast<double>(product.columns));
  mine.product_seconds.add(product.seconds.product);
}

void Metrics::add(const ServiceEvent& event) {
  if (event.type == "rank_lost") ++losses_;
  if (event.type == "job")
    if (const auto ended = ended_jobs_.find(event.state); ended != ended_jobs_.end()) ++ended->second;
  if (event.type != "ready") return;
  hosts_.clear();
  for (const service::Hello& hello : service_.ranks().hellos()) hosts_.push_back(hello.host);
}

const MatrixTotals& Metrics::totals(const std::string& matrix) const {
  static const MatrixTotals none;
  const auto found = matrices_.find(matrix);
  return found == matrices_.end() ? none : found->second.totals;
}

std::string Metrics::text(const Rights& rights) const {
  PrometheusText text;
  write_requests(text);
  write_products(text);
  write_tokens(text, rights);
  write_ranks(text);
  write_matrices(text, service_.matrices());
  write_ended_jobs(text);
  write_memory(text);
  write_devices(text);
  write_logs(text);
  if (more) more(text);
  write_process_figures(text);
  return text.text();
}

void Metrics::write_requests(PrometheusText& text) const {
  text.family("shardmat_requests_total", "counter", "Requests by matrix, what they ask for, and status.");
  for (const auto& [key, count] : requests_) {
    const auto& [matrix, op, status] = key;
    text.sample(static_cast<double>(count), {{"matrix", matrix}, {"op", op}, {"code", std::to_string(status)}});
  }
  text.family("shardmat_request_seconds", "histogram", "From the header of a request to the end of its reply.");
  for (const auto& [op, histogram] : request_seconds_) text.sample(histogram, {{"op", op}});
  text.family("shardmat_rejected_total", "counter", "Requests that were refused, by reason.");
  for (const auto& [code, count] : rejected_) text.sample(static_cast<double>(count), {{"reason", code}});
}

void Metrics::write_products(PrometheusText& text) const {
  const auto histograms = [&](const char* name, const char* help, Histogram PerMatrix::*which) {
    text.family(name, "histogram", help);
    for (const auto& [matrix, mine] : matrices_) text.sample(mine.*which, {{"matrix", matrix}});
  };
  histograms("shardmat_queue_seconds", "Time that requests waited for their product.", &PerMatrix::queue_seconds);
  histograms("shardmat_batch_columns", "Columns of requests in a product.", &PerMatrix::batch_columns);
  histograms("shardmat_product_seconds", "Products without copies, on the slowest rank.", &PerMatrix::product_seconds);
  text.family("shardmat_product_bytes_total", "counter",
              "Bytes that products had to move at least, of matrix and vectors, on all ranks.");
  for (const auto& [matrix, mine] : matrices_) text.sample(mine.totals.bytes, {{"matrix", matrix}});
  text.family("shardmat_copy_bytes_total", "counter",
              "Bytes of vectors between the ranks and the arena or memories of clients.");
  text.sample(static_cast<double>(copied_in_), {{"direction", "in"}});
  text.sample(static_cast<double>(copied_out_), {{"direction", "out"}});
  text.family("shardmat_batches_total", "counter", "Batches of requests that were multiplied.");
  text.sample(static_cast<double>(batches_));
  text.family("shardmat_batch_products_total", "counter", "Products of them: what waits together is one product.");
  text.sample(static_cast<double>(batch_products_));
  text.family("shardmat_queue_depth", "gauge", "Requests that wait for their product.");
  for (const auto& [name, matrix] : service_.matrices())
    text.sample(static_cast<double>(matrix->queue.size()), {{"matrix", name}});
}

void Metrics::write_tokens(PrometheusText& text, const Rights& rights) const {
  text.family("shardmat_token_seconds_total", "counter",
              "Time of the ranks that products took, by each token's share of columns.");
  for (const auto& [client, seconds] : client_seconds_)
    if (rights.is_owner() || client == rights.name()) text.sample(seconds, {{"token", client}});
  std::map<std::string, std::size_t> waiting;
  for (const auto& [client, seconds] : client_seconds_) waiting[client] = 0;
  service_.dispatcher().count_waiting(waiting);
  if (service_.count_queued_jobs) service_.count_queued_jobs(waiting);
  text.family("shardmat_token_queue_depth", "gauge",
              "Requests of each token that wait for their product, and its jobs that have not begun.");
  for (const auto& [client, count] : waiting)
    if (rights.is_owner() || client == rights.name()) text.sample(static_cast<double>(count), {{"token", client}});
  text.family("shardmat_token_bytes", "gauge", "Bytes that each token holds in vectors and in requests under way.");
  for (const auto& [tenant, account] : service_.token_memory().all()) {
    if (!rights.is_owner() && tenant != rights.tenant()) continue;
    text.sample(static_cast<double>(account.used[0]), {{"token", tenant}, {"kind", "vectors"}});
    text.sample(static_cast<double>(account.used[1]), {{"token", tenant}, {"kind", "requests"}});
  }
}

void Metrics::write_ranks(PrometheusText& text) const {
  text.family("shardmat_ready", "gauge", "1 while the service takes new work.");
  text.sample(service_.why_not_ready() ? 0 : 1);
  text.family("shardmat_engine_busy_seconds_total", "counter", "Time in which the ranks carried out commands.");
  text.sample(service_.dispatcher().busy_seconds());
  text.family("shardmat_rank_up", "gauge", "1 while the rank is there.");
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
    text.sample(service_.ranks().ready() ? 1 : 0, {{"rank", std::to_string(rank)}, {"host", hosts_[rank]}});
  text.family("shardmat_rank_lost_total", "counter", "Losses of ranks.");
  text.sample(static_cast<double>(losses_));
  text.family("shardmat_restarts_total", "counter", "Restarts of all ranks.");
  text.sample(service_.restarts());
}

void Metrics::write_logs(PrometheusText& text) const {
  text.family("shardmat_log_lines_lost_total", "counter",
              "Lines of a log that were lost, because nobody read them or they could not be written.");
  text.sample(static_cast<double>(lost_log_lines()), {{"log", "service"}});
  text.sample(static_cast<double>(service_.ranks().lost_log_lines()), {{"log", "workers"}});
  if (lost_access_lines) text.sample(static_cast<double>(lost_access_lines()), {{"log", "access"}});
  text.family("shardmat_state_saved", "gauge", "1 if the list of matrices on the disk is that of the service.");
  text.sample(service_.why_unsaved().empty() ? 1 : 0);
  text.family("shardmat_state_save_failures_total", "counter", "Failed attempts to write the list of matrices.");
  text.sample(static_cast<double>(service_.failed_saves()));
}

void Metrics::write_ended_jobs(PrometheusText& text) const {
  text.family("shardmat_ended_jobs_total", "counter", "Jobs that have ended, by what became of them.");
  for (const auto& [state, count] : ended_jobs_) text.sample(static_cast<double>(count), {{"state", state}});
}

void Metrics::write_devices(PrometheusText& text) const {
  const std::vector<service::Hello>& hellos = service_.ranks().hellos();
  const auto of_each = [&](const char* name, const char* help, const auto& write) {
    text.family(name, "gauge", help);
    for (std::size_t rank = 0; rank < hellos.size(); ++rank) write(hellos[rank], std::to_string(rank));
  };
  of_each("shardmat_rank_info", "1, with the host and the device of each rank.", [&](const auto& hello, const auto& rank) {
    text.sample(1, {{"rank", rank}, {"host", hello.host}, {"device", hello.device}});
  });
  of_each("shardmat_device_memory_bytes", "Device memory that was free when the rank started.",
          [&](const auto& hello, const auto& rank) {
            text.sample(static_cast<double>(hello.memory_bytes), {{"rank", rank}});
          });
  static const Rights all = Rights::of_owner("");
  of_each("shardmat_device_held_bytes", "Device memory that the rank holds.", [&](const auto&, const auto& rank) {
    const HeldBytes held = held_bytes(service_, std::stoul(rank), all);
    text.sample(static_cast<double>(held.matrices), {{"rank", rank}, {"kind", "matrices"}});
    text.sample(static_cast<double>(held.solvers), {{"rank", rank}, {"kind", "solvers"}});
    text.sample(static_cast<double>(held.vectors), {{"rank", rank}, {"kind", "vectors"}});
  });
}

void Metrics::write_memory(PrometheusText& text) const {
  std::map<std::size_t, double> by_rank;
  text.family("shardmat_matrix_bytes", "gauge", "Device memory of a matrix with its products, on all ranks.");
  for (const auto& [name, matrix] : service_.matrices()) {
    if (matrix->state != MatrixState::ready) continue;
    double bytes = 0;
    for (std::size_t rank = 0; rank < matrix->ranks.size(); ++rank) {
      bytes += static_cast<double>(matrix->ranks[rank].bytes);
      by_rank[rank] += static_cast<double>(matrix->ranks[rank].bytes);
    }
    text.sample(bytes, {{"matrix", name}});
  }
  text.family("shardmat_device_bytes", "gauge", "Device memory of all matrices on a rank.");
  for (const auto& [rank, bytes] : by_rank) text.sample(bytes, {{"rank", std::to_string(rank)}});
  text.family("shardmat_arena_bytes", "gauge", "Memory for the vectors of requests: what is taken, and what there is.");
  text.sample(static_cast<double>(service_.space().used()), {{"kind", "used"}});
  text.sample(static_cast<double>(service_.space().bytes()), {{"kind", "all"}});
}

}  // namespace shardmat::serve
