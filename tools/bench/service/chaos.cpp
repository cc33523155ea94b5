// Everything at once, for minutes: products, solves, eigenvalues, PageRank, batches, new values, loads, slow clients,
// cancelled jobs and bursts of requests, while ranks are killed and stopped at random. Every answer is checked: bits of
// products, batches and scores, the true residual of solves, eigenvalues. Whatever was taken is answered; what is refused,
// or lost with the ranks, says so.
#include <poll.h>
#include <csignal>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "kernels/base/error.h"
#include "tools/bench/service/checks.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

using nlohmann::json;
using Random = std::mt19937_64;
using Bytes = HostVector<std::byte>;

constexpr double kPatience = 1000, kResidual = 2e-8;
constexpr std::size_t kVectors = 8;
constexpr double kScales[] = {1, 2, 4, 0.5};  // of values: products scale without rounding

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
double any(Random& random, double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); }
std::size_t below(Random& random, std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); }

/// The service refused, or the ranks were lost: ask again later.
bool is_refusal(int status) { return status == 429 || status == 503; }

std::string words_of(const Reply& reply) { return fmt::format("{} {}", reply.status, reply.text().substr(0, 300)); }

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

Bytes scaled(std::span<const std::byte> numbers, double scale) {
  Bytes result(numbers.begin(), numbers.end());
  for (std::size_t at = 0; at + sizeof(double) <= result.size(); at += sizeof(double)) {
    double value = 0;
    std::memcpy(&value, result.data() + at, sizeof value);
    value *= scale;
    std::memcpy(result.data() + at, &value, sizeof value);
  }
  return result;
}

/// A batch of small tridiagonal matrices with x of ones: its body and its query.
struct SentBatch {
  std::string target;
  Bytes body, y;
};

SentBatch make_batch(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int64_t> first{0}, row_ptr{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (std::int64_t m = 0; m < count; ++m) {
    const auto n = static_cast<std::int64_t>(1 + below(random, 40));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = std::max<std::int64_t>(0, i - 1); j < std::min(n, i + 2); ++j)
        columns.push_back(static_cast<std::int32_t>(j)), values.push_back(any(random, -1, 1));
      row_ptr.push_back(std::ssize(columns));
    }
    first.push_back(first.back() + n);
  }
  std::vector<double> x;
  for (std::int64_t i = 0; i < first.back(); ++i) x.push_back(any(random, -1, 1));
  SentBatch batch;
  const auto put = [&](const auto& items) {
    const auto bytes = std::as_bytes(std::span(items));
    batch.body.insert(batch.body.end(), bytes.begin(), bytes.end());
  };
  put(first), put(first), put(row_ptr), put(values), put(x), put(columns);
  batch.target = fmt::format("/v1/batches?count={0}&rows={1}&cols={1}&nnz={2}", count, first.back(), values.size());
  return batch;
}

class Chaos {
 public:
  Chaos(const Setup& setup, Outcome& outcome)
      : outcome_(outcome),
        seed_(setup.seed),
        seconds_(setup.seconds > 0 ? setup.seconds : setup.by_size(60.0, 10.0)),
        spec_(setup.matrix_or("elasticity:n=8,clamp=0.05", "elasticity:n=6,clamp=0.05")),
        truth_(spec_),
        server_(setup.library, setup.ranks_or(2),
                {"--restarts", "1000000", "--restart-delay", "0", "--timeout", "5", "--max-queue-ms", "500"}) {
    file_ = setup.library.add(spec_);
    graph_file_ = setup.library.add("rmat:scale=8");
    matrix_.emplace(load("m", file_, R"("solvable": true)"));
    load("v", file_, R"("updatable": true)");
    load("g", graph_file_, R"("solvable": true)");
    prepare();
  }

  void run() {
    std::vector<std::thread> clients;
    std::uint64_t number = 0;
    const auto start = [&](const std::string& kind, int threads, void (Chaos::*work)(Connection&, Random&)) {
      kinds_.push_back(kind);
      for (int i = 0; i < threads; ++i)
        clients.emplace_back([this, kind, work, seed = seed_ + ++number * 1'000'003] { go_on(kind, work, seed); });
    };
    start("products", 2, &Chaos::multiply);
    start("solves", 2, &Chaos::solve);
    start("jobs that are looked at", 1, &Chaos::submit);
    start("jobs that are cancelled", 1, &Chaos::cancel);
    start("eigenvalues", 1, &Chaos::find_eigenvalues);
    start("PageRank", 1, &Chaos::rank);
    start("batches", 2, &Chaos::multiply_batch);
    start("new values", 1, &Chaos::change_values);
    start("products amid new values", 1, &Chaos::multiply_changing);
    start("loads", 1, &Chaos::load_and_unload);
    start("slow clients", 2, &Chaos::be_slow);
    start("bursts", 1, &Chaos::burst);
    try {
      disturb();
      calm();
    } catch (const Error& error) {
      tally_.wrong("the service", error.what());
    }
    stop_ = true;
    for (std::thread& client : clients) client.join();
    finish();
  }

 private:
  Resident load(const std::string& name, const std::string& file, const std::string& more) {
    Connection connection(server_.socket());
    const std::string body = fmt::format(R"({{"source": "{}", {}}})", file, more);
    const Reply reply = connection.ask(
        make_request("POST", fmt::format("/v1/matrices/{}/load?wait=1", name), std::as_bytes(std::span(body))));
    if (reply.status != 200) throw Error(ErrorKind::resources, fmt::format("{} was not loaded: {}", file, words_of(reply)));
    return Resident(reply.text());
  }

  Bytes body_of(Connection& connection, const Request& request) {
    const Reply reply = connection.ask(request);
    if (reply.status != 200) throw Error(ErrorKind::internal, "a first answer was " + words_of(reply));
    return {reply.body.begin(), reply.body.end()};
  }

  /// The answers of a service that nobody disturbs.
  void prepare() {
    Connection connection(server_.socket());
    x_ = random_vectors(*matrix_, kVectors, seed_);
    for (std::size_t i = 0; i < kVectors; ++i) {
      y_.push_back(body_of(connection, multiply_request("m", x(i))));
      y_of_v_.push_back(body_of(connection, multiply_request("v", x(i))));
    }
    scores_ = body_of(connection, make_request("POST", "/v1/matrices/g/pagerank?unweighted=1&wait=60"));
    eigenvalues_ = values_of(connection.ask(make_request("POST", kEigen)));
    for (std::uint64_t i = 0; i < 4; ++i) {
      batches_.push_back(make_batch(static_cast<std::int64_t>(20 + 60 * i), seed_ + i));
      SentBatch& batch = batches_.back();
      batch.y = body_of(connection, numbers_request("POST", batch.target, batch.body));
    }
    values_ = truth_values();
  }

  std::span<const std::byte> x(std::size_t i) const {
    return std::span(x_).subspan(i * matrix_->x_bytes(), matrix_->x_bytes());
  }

  Bytes truth_values() const {
    const auto bytes = std::as_bytes(truth_.values());
    return {bytes.begin(), bytes.end()};
  }

  static std::vector<double> values_of(const Reply& reply) {
    std::vector<double> values;
    if (reply.status != 200) return values;
    for (const json& pair : json::parse(reply.text()).at("result")) values.push_back(pair.at("value"));
    return values;
  }

  /// A client: it does its work again and again, on a connection that it makes anew when the service ends it.
  void go_on(const std::string& kind, void (Chaos::*work)(Connection&, Random&), std::uint64_t seed) {
    Random random(seed);
    kind_of_thread() = kind;
    while (!stop_) {
      try {
        Connection connection(server_.socket());
        while (!stop_) (this->*work)(connection, random);
      } catch (const std::exception& error) {  // the front end never goes, and answers whoever waits
        wrong(error.what());
        nap(0.05);
      }
    }
  }

  static std::string& kind_of_thread() {
    thread_local std::string kind;
    return kind;
  }
  void right() { tally_.right(kind_of_thread()); }
  void wrong(const std::string& why) { tally_.wrong(kind_of_thread(), why); }
  /// Counts what is no right answer: a refusal, after which the client rests, or something wrong.
  void not_right(const Reply& reply, Random& random, std::initializer_list<int> also = {}) {
    if (!is_refusal(reply.status) && std::find(also.begin(), also.end(), reply.status) == also.end())
      return wrong(words_of(reply));
    tally_.refused(kind_of_thread());
    nap(any(random, 0.005, 0.05));
  }
  void check(bool good, const std::string& why) { good ? right() : wrong(why); }

  void multiply(Connection& connection, Random& random) {
    const std::size_t i = below(random, kVectors);
    const Request request = multiply_request("m", x(i));
    const Reply reply = connection.ask(request);
    if (reply.status != 200) return not_right(reply, random);
    check(same(reply.body, y_[i]), "other bits");
  }

  std::string solve_target(Random& random) const {
    constexpr const char* kHow[] = {"method=cg&preconditioner=jacobi", "method=cg&preconditioner=multigrid",
                                    "method=cg&preconditioner=jacobi&alone=0", "method=minres&preconditioner=none",
                                    "method=cg&preconditioner=block_jacobi"};
    return fmt::format("/v1/matrices/m/solve?rtol=1e-8&{}", kHow[below(random, std::size(kHow))]);
  }

  void check_x(std::span<const std::byte> b, std::span<const std::byte> found) {
    const double residual = truth_.residual(b, found);
    check(residual <= kResidual, fmt::format("a residual of {:.3e} of b", residual));
  }

  void solve(Connection& connection, Random& random) {
    const std::size_t i = below(random, kVectors);
    const Request request = numbers_request("POST", solve_target(random) + "&wait=1000", x(i));
    const Reply reply = connection.ask(request);
    if (reply.status != 200) return not_right(reply, random);
    check_x(x(i), reply.body);
  }

  /// The id of a job, or nothing.
  std::string ask_for_job(Connection& connection, Random& random, std::size_t i) {
    const Request request = numbers_request("POST", solve_target(random), x(i));
    const Reply reply = connection.ask(request);
    if (reply.status == 202) return json::parse(reply.text()).at("id");
    not_right(reply, random);
    return {};
  }

  void submit(Connection& connection, Random& random) {
    const std::size_t i = below(random, kVectors);
    const std::string id = ask_for_job(connection, random, i);
    if (id.empty()) return;
    const double end = now() + kPatience;
    std::string state = "queued", code;
    while (state == "queued" || state == "running") {
      if (now() > end) return wrong(fmt::format("{} is {} after {:g} s", id, state, kPatience));
      nap(0.01);
      const Reply reply = connection.ask(make_request("GET", "/v1/jobs/" + id));
      if (reply.status != 200) return wrong("a job is gone: " + words_of(reply));
      const json job = json::parse(reply.text());
      state = job.at("state"), code = job.value("code", "");
    }
    if (state == "failed" && code == "rank_lost") return tally_.refused(kind_of_thread());
    if (state != "done") return wrong(fmt::format("{} is {}: {}", id, state, code));
    const Reply reply = connection.ask(make_request("GET", fmt::format("/v1/jobs/{}/x", id)));
    if (reply.status == 200) check_x(x(i), reply.body);
    else not_right(reply, random, {404, 410});  // x goes with the ranks
    const int status = connection.ask(make_request("DELETE", "/v1/jobs/" + id)).status;
    if (status != 204) wrong(fmt::format("DELETE of an ended job: {}", status));
  }

  void cancel(Connection& connection, Random& random) {
    const std::string id = ask_for_job(connection, random, below(random, kVectors));
    if (id.empty()) return;
    nap(any(random, 0, 0.1));
    const Reply first = connection.ask(make_request("DELETE", "/v1/jobs/" + id));
    if (first.status == 204) return right();  // it had ended
    if (first.status != 200) return wrong("DELETE: " + words_of(first));
    const std::string state = json::parse(first.text()).at("state");
    if (state == "queued" || state == "running") return wrong("a cancelled job is " + state);
    check(connection.ask(make_request("DELETE", "/v1/jobs/" + id)).status == 204, "an ended job stays");
  }

  void find_eigenvalues(Connection& connection, Random& random) {
    const Reply reply = connection.ask(make_request("POST", kEigen));
    if (reply.status != 200) return not_right(reply, random);
    const json job = json::parse(reply.text());
    const std::vector<double> found = values_of(reply);
    bool good = found.size() == eigenvalues_.size();
    for (std::size_t i = 0; good && i < found.size(); ++i)
      good = std::abs(found[i] - eigenvalues_[i]) <= 1e-7 * std::abs(eigenvalues_[i]);
    check(good, "other eigenvalues");
    connection.ask(make_request("DELETE", "/v1/jobs/" + job.at("id").get<std::string>()));
    nap(any(random, 0, 0.2));
  }

  void rank(Connection& connection, Random& random) {
    const Reply reply = connection.ask(make_request("POST", "/v1/matrices/g/pagerank?unweighted=1&wait=1000"));
    if (reply.status != 200) return not_right(reply, random);
    check(same(reply.body, scores_), "other bits");
    nap(any(random, 0, 0.1));
  }

  void multiply_batch(Connection& connection, Random& random) {
    const SentBatch& batch = batches_[below(random, batches_.size())];
    const Request request = numbers_request("POST", batch.target, batch.body);
    const Reply reply = connection.ask(request);
    if (reply.status != 200) return not_right(reply, random);
    check(same(reply.body, batch.y), "other bits");
  }

  /// Values that are lost with the ranks are told (410), and put again.
  void change_values(Connection& connection, Random& random) {
    const double scale = kScales[below(random, std::size(kScales))];
    const Bytes values = scaled(values_, scale);
    const Request put = numbers_request("PUT", "/v1/matrices/v/values", values);
    const Reply reply = connection.ask(put);
    if (reply.status != 200) return not_right(reply, random, {409});
    const std::size_t i = below(random, kVectors);
    const Request request = multiply_request("v", x(i));
    const Reply product = connection.ask(request);
    if (product.status != 200) return not_right(product, random, {409, 410});
    check(same(product.body, scaled(y_of_v_[i], scale)), "not the product of the values that were put");
    nap(any(random, 0, 0.1));
  }

  void multiply_changing(Connection& connection, Random& random) {
    const std::size_t i = below(random, kVectors);
    const Request request = multiply_request("v", x(i));
    const Reply reply = connection.ask(request);
    if (reply.status != 200) return not_right(reply, random, {409, 410});
    bool good = false;
    for (const double scale : kScales) good = good || same(reply.body, scaled(y_of_v_[i], scale));
    check(good, "the product of no values that were put");
  }

  void load_and_unload(Connection& connection, Random& random) {
    const std::string body = fmt::format(R"({{"source": "{}"}})", file_);
    const Reply loaded = connection.ask(make_request("POST", "/v1/matrices/t/load?wait=1", std::as_bytes(std::span(body))));
    if (loaded.status != 200) not_right(loaded, random, {409});
    const std::size_t i = below(random, kVectors);
    const Request request = multiply_request("t", x(i));
    const Reply product = connection.ask(request);
    if (product.status == 200) check(same(product.body, y_of_t(i, product)), "other bits");
    else not_right(product, random, {404, 409});
    const Reply unloaded = connection.ask(make_request("POST", "/v1/matrices/t/unload"));
    if (unloaded.status != 200) not_right(unloaded, random, {404, 409});
    nap(any(random, 0, 0.3));
  }

  /// Those of the first product with this vector.
  const Bytes& y_of_t(std::size_t i, const Reply& product) {
    y_of_t_.resize(kVectors);
    if (y_of_t_[i].empty()) y_of_t_[i].assign(product.body.begin(), product.body.end());
    return y_of_t_[i];
  }

  /// Half of a body, a rest, and then the other half, or nothing more.
  void be_slow(Connection& connection, Random& random) {
    const std::size_t i = below(random, kVectors);
    const bool solves = below(random, 2) == 0;
    const Request whole =
        solves ? numbers_request("POST", solve_target(random) + "&wait=1000", x(i)) : multiply_request("m", x(i));
    Request begin{whole.head, whole.body.first(whole.body.size() / 2), {}},
        rest{"", whole.body.subspan(whole.body.size() / 2), {}};
    connection.begin(begin);
    while (connection.sending()) {
      connection.send_some();
      pollfd writable{connection.descriptor(), POLLOUT, 0};
      if (connection.sending()) poll(&writable, 1, 1000);
    }
    nap(any(random, 0.05, 0.6));
    if (below(random, 3) == 0) {
      connection.reconnect();
      return right();
    }
    const Reply reply = connection.ask(rest);
    if (reply.status != 200) {
      not_right(reply, random);
      connection.reconnect();  // the service need not have read the rest
      return;
    }
    if (solves) check_x(x(i), reply.body);
    else check(same(reply.body, y_[i]), "other bits");
  }

  /// More than the service takes: the surplus is refused.
  void burst(Connection&, Random& random) {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < kVectors; ++i) {
      requests.push_back(multiply_request("m", x(i)));
      requests.back().expected = y_[i];
    }
    LoadOptions options{server_.socket(), requests};
    options.connections = 64, options.seconds = any(random, 0.05, 0.4), options.patience = kPatience;
    const LoadResult load = run_load(options);
    for (const Sample& sample : load.samples)
      if (sample.status == 200) right();
      else if (is_refusal(sample.status)) tally_.refused(kind_of_thread());
      else wrong(fmt::format("status {}", sample.status));
    for (std::int64_t i = 0; i < load.wrong; ++i) wrong("other bits");
    for (std::int64_t i = 0; i < load.missing; ++i) wrong("no answer");
    for (const double end = now() + any(random, 0.5, 3); now() < end && !stop_;) nap(0.05);
  }

  /// Kills and stops, until the time is over.
  void disturb() {
    Random random(seed_);
    double restart = 0;  // how long the last one took: as much work again is done in between
    for (const double end = now() + seconds_; now() < end;) {
      nap(any(random, 0.2, 3) + restart);
      const double began = now();
      const std::vector<pid_t> ranks = server_.rank_processes();
      if (ranks.empty()) continue;
      const pid_t rank = ranks[below(random, ranks.size())];
      switch (below(random, 4)) {
        case 0:  // a rank is held up for a moment
          kill(rank, SIGSTOP);
          nap(any(random, 0.01, 0.5));
          kill(rank, SIGCONT);
          ++pauses_;
          break;
        case 1:  // and for ever: the service notices
          kill(rank, SIGSTOP);
          ++stops_;
          for (const double late = now() + kPatience; now() < late && server_.ready();) nap(0.02);
          server_.wait_until_ready(kPatience);
          break;
        default:
          kill(rank, SIGKILL);
          ++kills_;
          if (below(random, 3) == 0) break;  // the next one comes while they start
          for (const double late = now() + 2; now() < late && server_.ready();) nap(0.002);
          server_.wait_until_ready(kPatience);
      }
      restart = now() - began;
    }
  }

  /// Once nobody disturbs any more, every kind of request is answered again.
  void calm() {
    server_.wait_until_ready(kPatience);
    std::vector<std::int64_t> before;
    for (const std::string& kind : kinds_) before.push_back(tally_.count_right(kind));
    const double end = now() + kPatience;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      while (tally_.count_right(kinds_[i]) == before[i] && now() < end) nap(0.05);
      if (tally_.count_right(kinds_[i]) == before[i]) tally_.wrong(kinds_[i], "no right answer at the end");
    }
  }

  /// Nothing is left: all answers are right again, nothing is held, and the service ends as it should.
  void finish() {
    kind_of_thread() = "the service";
    try {
      server_.wait_until_ready(kPatience);
      Connection connection(server_.socket());
      for (const double end = now() + kPatience;;) {
        const json matrix = json::parse(connection.ask(make_request("GET", "/v1/matrices/m")).text());
        if (matrix.value("state", "") == "ready") break;
        if (now() > end) throw Error(ErrorKind::internal, "the matrix is not there again");
        nap(0.05);
      }
      for (std::size_t i = 0; i < kVectors; ++i)
        check(same(body_of(connection, multiply_request("m", x(i))), y_[i]), "other bits at the end");
      const json jobs = json::parse(connection.ask(make_request("GET", "/v1/jobs")).text());
      for (const json& job : jobs.at("jobs")) {
        const std::string state = job.at("state"), id = job.at("id");
        check(state != "queued" && state != "running", "a job is still " + state);
        connection.ask(make_request("DELETE", "/v1/jobs/" + id));
      }
      const double end = now() + 10;
      while (arena_used(connection) != 0 && now() < end) nap(0.05);
      check(arena_used(connection) == 0, "requests still hold memory");
    } catch (const std::exception& error) {
      wrong(error.what());
    }
    const std::string how = server_.stop();
    check(how == "exit code 0", "it ended with " + how);
    outcome_.report("seconds", seconds_, Unit::seconds);
    outcome_.report("ranks killed", kills_, Unit::count);
    outcome_.report("ranks stopped for ever", stops_, Unit::count);
    outcome_.report("ranks stopped for a moment", pauses_, Unit::count);
    tally_.report(outcome_);
    outcome_.note(fmt::format("seed {}", seed_));
  }

  static std::uint64_t arena_used(Connection& connection) {
    return json::parse(connection.ask(make_request("GET", "/v1/ranks")).text()).at("arena").at("used");
  }

  static constexpr const char* kEigen = "/v1/matrices/m/eigen?count=3&which=largest&tolerance=1e-9&wait=1000";

  Outcome& outcome_;
  std::uint64_t seed_;
  double seconds_;
  std::string spec_, file_, graph_file_;
  Truth truth_;
  Server server_;
  std::optional<Resident> matrix_;
  Bytes x_, scores_, values_;
  std::vector<Bytes> y_, y_of_v_, y_of_t_;
  std::vector<double> eigenvalues_;
  std::vector<SentBatch> batches_;
  std::atomic<bool> stop_{false};
  std::vector<std::string> kinds_;
  Tally tally_;
  int kills_ = 0, stops_ = 0, pauses_ = 0;
};

}  // namespace

void run_chaos(const Setup& setup, Outcome& outcome) { Chaos(setup, outcome).run(); }

}  // namespace shardmat::tools::service_bench
