#include "tools/bench/peer_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "tools/cli/checks.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

constexpr double kSecondsOfOneThread = 0.01;
constexpr double kSecondsOfThreads = 0.1;  ///< long enough for /proc/stat to see other programs
constexpr double kMostForeignCores = 0.15;
constexpr int kUsualPairs = 21;

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TimedProducts timed(const std::function<void()>& product, int threads) {
  return [&product, threads](std::int64_t products) {
    const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    product();
    const double start = seconds_of(clock);
    for (std::int64_t i = 0; i < products; ++i) product();
    return seconds_of(clock) - start;
  };
}

TimedProducts timed(PeerProgram& process) {
  return [&process](std::int64_t products) { return process.run(products); };
}

void require_host(const std::string& backend) {
  if (backend == "cuda" || (backend == "auto" && cuda_device_count() > 0))
    throw Error(ErrorKind::usage, "peers are compared on the host", "backend=host");
}

}  // namespace

void add_peer_options(const CommandLine& app, PeerOptions& options, const std::vector<std::string>& without) {
  const Option peers =
      app.in(Topic::computation)
          .add_flag(
              "--peers", options.wanted,
              "compare on the host with MKL, PETSc, Eigen, DUNE, librsb and SciPy, as far as they were found when "
              "Shardmat was built. Each cell is the median over --repetitions pairs of products (default 21), with its "
              "90 % interval")
          ->common();
  for (const std::string& option : without) peers->excludes(option);
  app.in(Topic::machine)
      .add_option("--threads", options.threads,
                  "with --peers: numbers of threads, as a list, e.g. 1,2. PETSc takes as many ranks")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, 4096))
      ->needs(peers)
      ->capture_default_str();
}

PeerTrial::PeerTrial(const CsrView& matrix, ValueType type, const RightHandSides& rhs, Stream& stream, bool verify)
    : matrix_(matrix), type_(type), rhs_(rhs), stream_(stream), table_(type) {
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(rows * rhs.count) * size_of(type); };
  x_ = Buffer(stream.device(), bytes(matrix.cols));
  y_ = Buffer(stream.device(), bytes(matrix.rows));
  table_.fill(x_, stream);
  if (!verify) return;
  std::vector<double> x(static_cast<std::size_t>(matrix.cols));
  for (const std::int64_t column : std::set<std::int64_t>{0, rhs.count / 2, rhs.count - 1}) {
    const DenseStrides step = strides(rhs.x, leading_x());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = table_.at(static_cast<std::int64_t>(i) * step.row + column * step.column);
    checks_.try_emplace(column, matrix, type, x);
  }
}

void PeerTrial::poison_y() { fill_bytes(y_.data(), 0xff, y_.bytes(), stream_); }

std::int64_t PeerTrial::count_wrong(const void* y) const {
  std::int64_t wrong = 0;
  dispatch(type_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    HostVector<T> part(static_cast<std::size_t>(matrix_.rows));
    const DenseStrides step = strides(rhs_.y, leading_y());
    for (const auto& [column, check] : checks_) {
      for (std::size_t i = 0; i < part.size(); ++i)
        part[i] = static_cast<const T*>(y)[static_cast<std::int64_t>(i) * step.row + column * step.column];
      wrong += check.compare(part.data(), stream_).wrong_rows;
    }
  });
  return wrong;
}

struct PeerComparison::Programs {
  struct Listed {
    PeerName peer;
    PeerProgram* process;
  };

  std::vector<std::unique_ptr<PeerProgram>> processes;
  std::vector<Listed> peers;

  /// Takes the peers that run so: with one thread all of them.
  void add(std::vector<std::string> command, int ranks, int threads, bool one_thread, const std::string& parallel) {
    PeerProgram& process =
        *processes.emplace_back(std::make_unique<PeerProgram>(std::move(command), ranks, threads, one_thread));
    for (const PeerName& peer : process.list())
      if (peer.preconditioner.empty() && (one_thread || peer.parallel == parallel)) peers.push_back({peer, &process});
  }
};

PeerComparison::PeerComparison(const std::string& bench, const RunOptions& options, const PeerOptions& peers)
    : print_(options.json != "-"), types_(options.value_types()), threads_(peers.threads), stream_(Device{}), load_([this] {
        return own_seconds();
      }) {
  if (std::any_of(types_.begin(), types_.end(), is_half))
    throw Error(ErrorKind::usage, "peers take values in f32 and f64", "type");
  require_host(options.backend);
  require_peer_program();
  let_waiting_threads_sleep();
  report_.bench = bench;
  report_.machine = examine_machine("host");
  report_.repetitions = options.repetitions > 0 ? options.repetitions : kUsualPairs;
  report_.verified = options.verify;
  if (print_) fmt::print("{}", header_text(report_));
}

PeerComparison::~PeerComparison() = default;

double PeerComparison::own_seconds() const {
  double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (const auto& [threads, programs] : programs_)
    for (const auto& process : programs->processes) seconds += process->cpu_seconds();
  return seconds;
}

PeerComparison::Programs& PeerComparison::programs(int threads) {
  std::unique_ptr<Programs>& made = programs_[threads];
  if (made) return *made;
  made = std::make_unique<Programs>();
  const std::string program = peer_program_path();
  const bool one = threads == 1;
  made->add({program}, 1, threads, one, "threads");
  const auto unless_it_fails = [&](const char* what, const auto& start) {
    try {
      start();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resources) throw;
      report_.notes.push_back(fmt::format("{} left out with {} threads: {}", what, threads, error.what()));
    }
  };
  if (one) {
    unless_it_fails("SciPy", [&] {
      made->add({"python3", (program_folder() / "scipy_peer.py").string()}, 1, threads, one, "threads");
    });
  } else {
    report_.notes.push_back(fmt::format("DUNE and SciPy multiply in one thread: left out with {} threads", threads));
    const auto all = made->processes.front()->list();
    if (std::any_of(all.begin(), all.end(), [](const PeerName& peer) { return peer.parallel == "ranks"; }))
      unless_it_fails("PETSc", [&] {
        made->add({"mpirun", "-n", std::to_string(threads), "--bind-to", "none", program}, threads, 1, one, "ranks");
      });
  }
  return *made;
}

PairOptions PeerComparison::pair_options(int threads, int pairs) const {
  if (threads == 1) return {pairs, kSecondsOfOneThread, 0};
  return {pairs, kSecondsOfThreads, kMostForeignCores};
}

std::pair<int, int> PeerComparison::choose(PeerCase& one, PeerTrial& trial, Programs& programs, SharedOperands& operands,
                                           const OwnProduct& own) {
  int best[2] = {-1, -1};
  for (const auto& [peer, process] : programs.peers) {
    PeerResult& result = one.peers.emplace_back();
    result.peer = peer;
    const PeerProgram::Prepared prepared = process->prepare(peer.name);
    result.detail = prepared.detail, result.refused = prepared.refused;
    if (!result.refused.empty()) continue;
    const Pairs pairs = measure_pairs(timed(own.multiply, one.threads), timed(*process),
                                      pair_options(one.threads, (report_.repetitions + 1) / 2), load_);
    result.first = PeerRatio(peer.heading, pairs);
    if (report_.verified) {
      operands.poison_y();
      process->store_result();
      result.wrong = trial.count_wrong(operands.y());
    }
    process->drop();
    int& fastest = best[peer.symmetric ? 1 : 0];
    const auto place = static_cast<std::size_t>(fastest);
    if (result.wrong == 0 && (fastest < 0 || result.first.ratio.median < one.peers[place].first.ratio.median))
      fastest = static_cast<int>(std::ssize(one.peers)) - 1;
  }
  return {best[0], best[1]};
}

MemoryShare PeerComparison::share_of(const OwnProduct& own, const PeerTrial& trial, int threads) {
  constexpr std::int64_t kLeastBytes = 150'000'000;  // smaller matrices may stay in a cache
  MemoryShare share;
  if (own.matrix_bytes < kLeastBytes) return share;
  if (streams_ == nullptr) streams_ = std::make_unique<Streams>();
  const auto vectors = static_cast<double>((trial.matrix().cols + trial.matrix().rows) * trial.rhs().count) *
                       static_cast<double>(size_of(trial.type()));
  const double bytes = static_cast<double>(own.matrix_bytes) + vectors;
  for (const StreamLoop& loop : streams_->loops()) {
    const Pairs pairs = measure_pairs(timed(own.multiply, threads), timed(loop.run, threads),
                                      pair_options(threads, report_.repetitions), load_);
    const PeerRatio ratio(loop.name, pairs);
    const double rate = loop.bytes / ratio.peer_seconds, scale = bytes / loop.bytes;
    if (rate <= share.rate) continue;
    share = {loop.name, rate, {scale * ratio.ratio.median, scale * ratio.ratio.low, scale * ratio.ratio.high}};
  }
  return share;
}

void PeerComparison::compare(PeerCase& one, PeerTrial& trial, SharedOperands& operands, const MakeOwn& make_own) {
  const ThreadCount scope(one.threads);
  Programs& all = programs(one.threads);
  const std::vector<OwnProduct> own = make_own(trial);
  for (const OwnProduct& product : own) {
    OwnKernel& kernel = one.own.emplace_back();
    kernel.asked = product.asked, kernel.kernel = product.kernel, kernel.policy = product.policy;
    trial.poison_y();
    product.multiply();
    kernel.wrong = trial.count_wrong(trial.y());
  }
  for (std::size_t i = 0; i < own.size(); ++i) one.own[i].share = share_of(own[i], trial, one.threads);
  for (const auto& process : all.processes) process->open(operands);
  const auto [full, symmetric] = choose(one, trial, all, operands, own.front());
  for (const int place : {full, symmetric}) {
    if (place < 0) continue;
    const auto& [peer, process] = all.peers[static_cast<std::size_t>(place)];
    process->prepare(peer.name);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Pairs pairs = measure_pairs(timed(own[i].multiply, one.threads), timed(*process),
                                        pair_options(one.threads, report_.repetitions), load_);
      (peer.symmetric ? one.own[i].best_symmetric : one.own[i].best) = PeerRatio(peer.heading, pairs);
    }
    process->drop();
  }
}

void PeerComparison::compare(const WorkName& work, const CsrView& matrix, ValueType type, const RightHandSides& rhs,
                             const MakeOwn& make_own, const GrowingReport& file) {
  PeerTrial trial(matrix, type, rhs, stream_, report_.verified);
  SharedOperands operands(matrix, type, rhs, [&](std::int64_t i) { return trial.entry(i); });
  for (const std::int64_t threads : threads_) {
    PeerCase one;
    one.name = work.name, one.argument = work.argument;
    one.rows = matrix.rows, one.cols = matrix.cols, one.nnz = matrix.nnz();
    one.type = type, one.rhs = rhs, one.threads = static_cast<int>(threads);
    compare(one, trial, operands, make_own);
    report_.cases.push_back(std::move(one));
    if (print_) fmt::print("{}", case_text(report_.cases.back()));
    std::fflush(stdout);
    file.save([&] { return to_json(report_); });
  }
}

int PeerComparison::finish(const GrowingReport& file) const {
  if (print_) fmt::print("{}", summary_text(report_));
  file.finish(to_json(report_));
  return exit_code(count_wrong(report_));
}

}  // namespace shardmat::tools
