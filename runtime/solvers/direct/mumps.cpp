// MUMPS: each rank gives its rows and its part of b, and gets its part of x. Everything is f64.
#include "runtime/solvers/direct/factors.h"

#ifdef SHARDMAT_HAVE_MUMPS
#include <dlfcn.h>
#include <dmumps_c.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/items_by_rank.h"
#include "comm/mpi_session.h"
#include "comm/run_while_checking_ranks.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/context/leftovers.h"
#endif

namespace shardmat::direct {

#ifdef SHARDMAT_HAVE_MUMPS

namespace {

using multigrid::NodeRows;

enum Job : MUMPS_INT { kBegin = -1, kEnd = -2, kAnalyse = 1, kFactorise = 2, kSolve = 3 };

constexpr std::int64_t kMegabyte = 1'000'000;
constexpr MUMPS_INT kRelaxation = 20, kMostRelaxation = 1000;  ///< per cent of workspace above what the analysis foresees

/// MUMPS gives large counts as negative millions.
std::int64_t count_of(MUMPS_INT value) { return value >= 0 ? std::int64_t{value} : -std::int64_t{value} * 1'000'000; }

std::string ordering_of(MUMPS_INT number) {
  constexpr std::array<const char*, 7> kNames{"AMD", "given", "AMF", "SCOTCH", "PORD", "METIS", "QAMD"};
  return number >= 0 && at(number) < kNames.size() ? kNames[at(number)] : fmt::format("number {}", number);
}

/// While in scope: OpenBLAS, if MUMPS was linked with it, takes the threads of this rank and not all cores.
class BlasThreads {
 public:
  BlasThreads() {
    if (get_ == nullptr || set_ == nullptr) return;
    before_ = get_();
    set_(thread_count());
  }
  ~BlasThreads() {
    if (before_ > 0) set_(before_);
  }
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  int (*get_)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  void (*set_)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  int before_ = 0;
};

/// MUMPS's data of one matrix. Its calls are collective, and wait for other ranks without a deadline.
class Instance {
 public:
  Instance(Communicator& all, Kind kind) : all_(all), own_(all.duplicate(all.timeout_seconds())) {
    id_.par = 1;
    id_.sym = kind == Kind::unsymmetric ? 0 : kind == Kind::definite ? 1 : 2;
    id_.comm_fortran = static_cast<MUMPS_INT>(MPI_Comm_c2f(own_.native()));
    run(kBegin);
    control(1) = control(2) = control(3) = -1, control(4) = 0;  // prints nothing
    control(18) = 3;                                            // rows lie on all ranks
    control(20) = 10, control(21) = 1;                          // and so do b and x
    control(13) = 1;                                            // counts all pivots
    control(24) = 1;                                            // leaves pivots of 0 out
    control(14) = kRelaxation;
  }
  ~Instance() = default;  // end() is collective
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  DMUMPS_STRUC_C& id() { return id_; }
  MUMPS_INT& control(int i) { return id_.icntl[i - 1]; }
  /// On all ranks, on this one.
  MUMPS_INT all_info(int i) const { return id_.infog[i - 1]; }
  MUMPS_INT info(int i) const { return id_.info[i - 1]; }

  void run(Job job) {
    id_.job = job;
    const auto call = [this] {
      const BlasThreads threads;
      dmumps_c(&id_);
    };
    if (all_.size() > 1) return run_while_checking_ranks(all_, call);
    static std::mutex one_at_a_time;  // of other contexts
    const std::lock_guard lock(one_at_a_time);
    call();
  }
  void end() { run(kEnd); }

 private:
  DMUMPS_STRUC_C id_{};
  Communicator& all_;
  Communicator own_;
};

[[noreturn]] void refuse_singular(std::int64_t rank, std::int64_t rows) {
  throw Error(
      ErrorKind::input,
      fmt::format("the matrix is singular: {}",
                  rank >= 0 && rank < rows ? fmt::format("its pattern alone allows a rank of {} of {} at most", rank, rows)
                                           : std::string("no pivot is left that is not 0")),
      "matrix");
}

class Mumps final : public Factors {
 public:
  explicit Mumps(Context& context) : context_(context), ranks_(context.communicator()) {
    context.leftovers().free(ranks_);
    ranks_.run_agreed([&] {
      if (ranks_.size() > 1) require_mpi_threads();
    });
  }
  ~Mumps() override { leave(); }

  void factorise(const NodeRows& a, Kind kind, std::int64_t node_size) override {
    node_size_ = node_size;
    ready_ = false;
    const bool was_not_definite = kind == Kind::definite && kind_ == Kind::symmetric;  // most likely it still is not
    take_entries(a, was_not_definite ? Kind::symmetric : kind);
    if (rows_ == 0) return;
    factorise_entries();
    if (kind_ == Kind::definite && (instance_->all_info(1) == -40 || instance_->all_info(12) > 0)) {
      take_entries(a, Kind::symmetric);
      factorise_entries();
      report_.note = "not positive definite, as the first factorisation found";
    }
    require_factors();
    value_ = {};
    describe();
    routed_ = false, ready_ = true;
  }

  void solve(std::span<double> b, int columns) override {
    if (rows_ == 0) return;
    const Timer timer;
    DMUMPS_STRUC_C& id = instance_->id();
    const auto own = static_cast<std::int64_t>(number_.size());
    ranks_.run_agreed([&] {
      if (!ready_) throw Error(ErrorKind::usage, "there are no factors: the last factorisation failed", "preconditioner");
      id.lsol_loc = std::max<MUMPS_INT>(1, instance_->info(23));
      require_host_memory(8 * columns * std::int64_t{id.lsol_loc}, "the solution of a direct solver");
      x_.resize(at(std::int64_t{id.lsol_loc} * columns)), x_number_.resize(at(id.lsol_loc));
    });
    double none = 0;
    MUMPS_INT no_number = 1;
    id.nrhs = columns;
    id.nloc_rhs = static_cast<MUMPS_INT>(own), id.lrhs_loc = std::max<MUMPS_INT>(1, id.nloc_rhs);
    id.irhs_loc = own > 0 ? number_.data() : &no_number, id.rhs_loc = own > 0 ? b.data() : &none;
    id.sol_loc = x_.data(), id.isol_loc = x_number_.data();
    instance_->run(kSolve);
    ranks_.run_agreed([&] { check("solve"); });
    bring_home(b, columns);
    report_.solve_seconds += timer.seconds(), ++report_.solves;
  }

  std::int64_t bytes() const override {
    return instance_ == nullptr ? 0 : instance_->info(22) * kMegabyte + 8 * std::ssize(row_);
  }

 private:
  using Numbers = HostVector<MUMPS_INT>;

  /// Gives the instance away. Not collective.
  void leave() {
    if (instance_ == nullptr) return;
    if (ranks_.size() == 1) instance_->end(), instance_.reset();
    else context_.leftovers().leave(instance_number_, [instance = std::move(instance_)] { instance->end(); });
  }

  /// The entries from `a` that MUMPS wants of such a matrix, and an instance for this pattern.
  void take_entries(const NodeRows& a, Kind kind) {
    Numbers row, column;
    const bool same = ranks_.run_agreed([&] {
      constexpr std::int64_t kMostRows = std::numeric_limits<MUMPS_INT>::max() - 1;
      rows_ = a.rows->all(), starts_ = a.rows->starts();
      if (rows_ > kMostRows)
        throw Error(ErrorKind::usage, fmt::format("MUMPS factorises at most {} rows; these are {}", kMostRows, rows_),
                    "matrix");
      require_host_memory(a.blocks() * 24, "the entries for MUMPS");
      row.reserve(at(a.blocks() + 1)), column.reserve(at(a.blocks() + 1)), value_.clear(),
          value_.reserve(at(a.blocks() + 1));
      const std::int64_t first = a.rows->first();
      for (std::int64_t i = 0; i < a.count(); ++i)
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
          const std::int64_t j = a.cols->global(a.column[at(k)]);
          if (kind != Kind::unsymmetric && j < first + i) continue;
          row.push_back(static_cast<MUMPS_INT>(first + i + 1)), column.push_back(static_cast<MUMPS_INT>(j + 1));
          value_.push_back(a.value[at(k)]);
        }
      number_.resize(at(a.count()));
      for (std::size_t i = 0; i < number_.size(); ++i)
        number_[i] = static_cast<MUMPS_INT>(first + static_cast<std::int64_t>(i) + 1);
      return instance_ != nullptr && analysed_ && kind == kind_ && row == row_ && column == column_;
    });
    if (ranks_.all_reduce(same ? 1 : 0, Reduction::min) == 1) return;
    leave();
    kind_ = kind, analysed_ = false;
    row_ = std::move(row), column_ = std::move(column);
    if (rows_ > 0) analyse();
  }

  void analyse() {
    const Timer timer;
    context_.leftovers().free(ranks_);
    instance_number_ = context_.leftovers().number();
    instance_ = std::make_shared<Instance>(ranks_, kind_);
    DMUMPS_STRUC_C& id = instance_->id();
    id.n = static_cast<MUMPS_INT>(rows_);
    id.nnz_loc = std::ssize(row_);
    id.irn_loc = row_.data(), id.jcn_loc = column_.data(), id.a_loc = value_.data();
    if (node_size_ > 1 && rows_ % node_size_ == 0) instance_->control(15) = -static_cast<MUMPS_INT>(node_size_);
    instance_->run(kAnalyse);
    if (instance_->all_info(1) == -57) {  // an older one
      instance_->control(15) = 0;
      instance_->run(kAnalyse);
    }
    ranks_.run_agreed([&] { check("order"); });
    analysed_ = true;
    report_ = {};
    report_.analysis_seconds = timer.seconds();
  }

  /// Leaves errors that a caller may mend in all_info(1).
  void factorise_entries() {
    const Timer timer;
    DMUMPS_STRUC_C& id = instance_->id();
    id.a_loc = value_.data();
    report_.note.clear();
    for (;;) {
      ranks_.run_agreed([&] {
        const double share = (100.0 + instance_->control(14)) / (100.0 + kRelaxation);
        require_host_memory(static_cast<std::int64_t>(share * static_cast<double>(instance_->info(15) * kMegabyte)),
                            "the factors that MUMPS foresees (this rank's part; more ranks on other hosts, or an iterative "
                            "solver, need less)");
      });
      instance_->run(kFactorise);
      const MUMPS_INT error = instance_->all_info(1);
      const bool is_short = error == -8 || error == -9 || error == -14 || error == -15 || error == -17 || error == -20;
      if (!is_short || instance_->control(14) >= kMostRelaxation) break;
      instance_->control(14) *= 2;
      report_.note = fmt::format("with {} % of workspace above what the analysis foresaw", instance_->control(14));
    }
    report_.factorise_seconds = timer.seconds();
  }

  void require_factors() {
    ranks_.run_agreed([&] { check("factorise"); });
  }

  void check(const char* what) const {
    const MUMPS_INT error = instance_->all_info(1), detail = instance_->all_info(2);
    if (error >= 0) return;
    if (error == -6) refuse_singular(detail, rows_);
    if (error == -10) refuse_singular(-1, rows_);
    if (error == -13 || error == -7 || error == -5 || error == -19)
      throw Error(ErrorKind::resources,
                  fmt::format("out of host memory: MUMPS could not {} the matrix; take more ranks on other hosts, or an "
                              "iterative solver",
                              what));
    if (error == -51 || error == -52)
      throw Error(ErrorKind::resources, "the graph of the matrix has more edges than MUMPS's ordering counts in 32 bits");
    throw Error(ErrorKind::internal, fmt::format("MUMPS could not {} the matrix: error {}, {}", what, error, detail));
  }

  void describe() {
    report_.library = fmt::format("MUMPS {}", instance_->id().version_number);
    report_.kind = kind_ == Kind::unsymmetric ? "L·U" : kind_ == Kind::symmetric ? "L·D·Lᵀ" : "L·D·Lᵀ without pivoting";
    report_.ordering = ordering_of(instance_->all_info(7));
    report_.nonzeros = count_of(instance_->all_info(29));
    report_.bytes = std::max(instance_->all_info(22) * kMegabyte, 12 * report_.nonzeros);  // whole ones are told
    report_.null_pivots = instance_->all_info(28);
    report_.negative = kind_ == Kind::unsymmetric ? 0 : instance_->all_info(12);
    report_.definite = kind_ != Kind::unsymmetric && report_.negative == 0;
  }

  /// From where MUMPS leaves x to the rows' ranks.
  void bring_home(std::span<double> x, int columns) {
    const std::int64_t own = std::ssize(number_), given = instance_->info(23), apart = instance_->id().lsol_loc;
    const auto first = starts_[at(ranks_.rank())];
    if (ranks_.size() == 1) {
      for (std::int64_t p = 0; p < given; ++p)
        for (std::int64_t j = 0; j < columns; ++j) x[at(j * own + x_number_[at(p)] - 1)] = x_[at(j * apart + p)];
      return;
    }
    if (!routed_) find_route(given);
    ItemsByRank<double> out;
    ranks_.run_agreed([&] {
      require_host_memory(8 * columns * given, "the solution of a direct solver");
      for (const std::int64_t count : counts_) out.counts.push_back(count * columns);
      for (const std::int64_t p : sent_)
        for (std::int64_t j = 0; j < columns; ++j) out.items.push_back(x_[at(j * apart + p)]);
    });
    const ItemsByRank<double> in = send_items(ranks_, out);
    for (std::int64_t p = 0; p < std::ssize(taken_); ++p)
      for (std::int64_t j = 0; j < columns; ++j) x[at(j * own + taken_[at(p)] - first)] = in.items[at(p * columns + j)];
  }

  /// Once for all solves with these factors. Collective.
  void find_route(std::int64_t given) {
    struct Sent {
      std::int64_t row, place;
    };
    ItemsByRank<std::int64_t> out;
    ranks_.run_agreed([&] {
      std::vector<Sent> all;
      for (std::int64_t p = 0; p < given; ++p) all.push_back({x_number_[at(p)] - 1, p});
      const auto rank_of = [&](const Sent& sent) {
        return std::upper_bound(starts_.begin(), starts_.end(), sent.row) - starts_.begin() - 1;
      };
      const ItemsByRank<Sent> sorted = sort_by_rank(std::span<const Sent>(all), ranks_.size(), rank_of);
      out.counts = counts_ = sorted.counts;
      sent_.clear();
      for (const Sent& sent : sorted.items) sent_.push_back(sent.place), out.items.push_back(sent.row);
    });
    taken_ = send_items(ranks_, out).items;
    routed_ = true;
  }

  Context& context_;
  Communicator& ranks_;
  std::int64_t rows_ = 0;  ///< of all ranks
  std::vector<std::int64_t> starts_;
  std::shared_ptr<Instance> instance_;
  std::uint64_t instance_number_ = 0;
  std::int64_t node_size_ = 1;
  Kind kind_ = Kind::unsymmetric;
  bool analysed_ = false, ready_ = false, routed_ = false;
  Numbers row_, column_;      ///< the pattern that was analysed, from 1
  HostVector<double> value_;  ///< only while it is factorised
  Numbers number_;            ///< this rank's rows, from 1
  HostVector<double> x_;      ///< as MUMPS leaves it, and the rows there
  Numbers x_number_;
  std::vector<std::int64_t> counts_;
  HostVector<std::int64_t> sent_, taken_;  ///< places in x_ by rank; rows that come
};

}  // namespace

std::unique_ptr<Factors> make_mumps(Context& context) { return std::make_unique<Mumps>(context); }

bool built_with_mumps() { return true; }

#else

bool built_with_mumps() { return false; }
std::unique_ptr<Factors> make_mumps(Context&) { return nullptr; }

#endif

}  // namespace shardmat::direct
