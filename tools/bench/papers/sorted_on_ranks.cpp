#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "comm/nccl/nccl_communicator.h"
#include "kernels/base/error.h"
#include "kernels/base/timer.h"
#include "kernels/choose/registry.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/upload.h"
#include "kernels/matrix/ordering.h"
#include "kernels/vector.h"
#include "runtime/context/context_scope.h"
#include "tools/bench/first_ranks.h"
#include "tools/bench/papers/threads.h"
#include "tools/bench/peer_pairs.h"

namespace shardmat::tools {
namespace {

using Phases = SortedOnRanks::Phases;
constexpr double kMostSeconds = 1;

/// Of every size, so that a product with other columns is wrong; exact in f32.
double entry_of_x(std::int64_t j) { return static_cast<double>(512 + j * 7919 % 1021) / 1024; }

/// First rows of parts of equal nonzeros, from the top of the matrix, then the number of rows.
std::vector<std::int64_t> starts_of(const HostCsr& m, int parts) {
  std::vector<std::int64_t> starts{0};
  for (int p = 1; p < parts; ++p) {
    const auto at = std::lower_bound(m.row_ptr.begin(), m.row_ptr.end(), m.nnz() * p / parts);
    starts.push_back(std::clamp<std::int64_t>(at - m.row_ptr.begin(), starts.back(), m.rows));
  }
  starts.push_back(m.rows);
  return starts;
}

/// One rank's part of the rows, and all of y in slots of equal length that an all-gather fills.
class Part {
 public:
  /// order[new row] = old row.
  Part(Context& context, const HostCsr& rows, std::span<const std::int64_t> order, ValueType type)
      : context_(context), type_(type), bytes_(size_of(type)), rows_(rows.rows) {
    const int ranks = context.communicator().size(), rank = context.communicator().rank();
    const std::vector<std::int64_t> starts = starts_of(rows, ranks);
    for (int p = 0; p < ranks; ++p)
      slot_ = std::max(slot_, starts[static_cast<std::size_t>(p) + 1] - starts[static_cast<std::size_t>(p)]);
    const CsrView mine =
        rows.view().rows_between(starts[static_cast<std::size_t>(rank)], starts[static_cast<std::size_t>(rank) + 1]);
    Stream& stream = context.stream();
    input_.emplace(mine, type, stream);
    storage_ = store(find_format("csr"), *input_, {});
    dispatch(type, [&]<class Tag>(Tag) {
      x_ = upload<typename Tag::type>(rows.cols, stream, [](std::int64_t j) { return entry_of_x(j); });
    });
    gathered_ = Buffer(stream.device(), static_cast<std::size_t>(slot_ * ranks) * bytes_);
    y_ = Buffer(stream.device(), static_cast<std::size_t>(rows.rows) * bytes_);
    std::vector<std::int32_t> places(static_cast<std::size_t>(rows.rows));
    for (int p = 0; p < ranks; ++p)
      for (std::int64_t i = starts[static_cast<std::size_t>(p)]; i < starts[static_cast<std::size_t>(p) + 1]; ++i)
        places[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] =
            static_cast<std::int32_t>(p * slot_ + i - starts[static_cast<std::size_t>(p)]);
    places_ = upload<std::int32_t>(places, stream);
    stream.synchronize();
  }

  void use(int threads_per_row) {
    const Kernel& kernel = *find_paper_kernel("crs_paper", context_.device().backend);
    threads_ = threads_per_row > 0 ? threads_per_row : threads_by_formula();
    plan_ = make_plan(kernel, storage_, Policy{{"threads_per_row", threads_}}, context_.stream());
  }
  int threads() const { return threads_; }
  int threads_by_formula() const { return threads_per_row_by_formula(input_->rows()); }

  void multiply() {
    char* const mine =
        static_cast<char*>(gathered_.data()) + static_cast<std::size_t>(slot_ * context_.communicator().rank()) * bytes_;
    plan_->multiply(1, x_.data(), 0, mine, context_.stream());
  }
  void gather() {
    if (context_.communicator().size() == 1) return;
    if (NcclCommunicator* nccl = context_.nccl())
      return nccl->all_gather_in_place(gathered_.data(), static_cast<std::size_t>(slot_), type_, context_.stream());
    if (context_.device().backend == Backend::host)
      return context_.communicator().all_gather_slots(gathered_.data(), static_cast<std::size_t>(slot_) * bytes_);
    // Several ranks on one GPU: over the host.
    HostVector<char> on_host(gathered_.bytes());
    copy_to_host(on_host.data(), gathered_.data(), on_host.size(), context_.stream());
    context_.stream().synchronize();
    context_.communicator().all_gather_slots(on_host.data(), static_cast<std::size_t>(slot_) * bytes_);
    copy_to_device(gathered_.data(), on_host.data(), on_host.size(), context_.stream());
    context_.stream().synchronize();
  }
  void restore() {
    gather_entries(bytes_, rows_, places_.as<std::int32_t>(), gathered_.data(), y_.data(), context_.stream());
  }
  void wait() { context_.wait(context_.stream(), "a product of sorted rows"); }

  /// y on the host.
  HostVector<double> result() {
    HostVector<double> y(static_cast<std::size_t>(rows_));
    dispatch(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      HostVector<T> narrow(y.size());
      copy_to_host(narrow.data(), y_.data(), y_.bytes(), context_.stream());
      context_.stream().synchronize();
      std::copy(narrow.begin(), narrow.end(), y.begin());
    });
    return y;
  }

 private:
  Context& context_;
  ValueType type_;
  std::size_t bytes_;
  std::int64_t rows_, slot_ = 0;
  std::optional<ConversionInput> input_;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<Plan> plan_;
  int threads_ = 0;
  Buffer x_, gathered_, y_, places_;
};

/// y = A·x is right if each entry lies within the error bound of its row's sum.
bool is_right(const HostCsr& rows, ValueType type, const HostVector<double>& y) {
  const double epsilon = type == ValueType::f32 ? 1.2e-7 : 2.3e-16;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    double sum = 0, absolute = 0;
    const std::int64_t begin = rows.row_ptr[static_cast<std::size_t>(i)],
                       end = rows.row_ptr[static_cast<std::size_t>(i) + 1];
    for (std::int64_t k = begin; k < end; ++k) {
      const double term = rows.values[static_cast<std::size_t>(k)] * entry_of_x(rows.col_idx[static_cast<std::size_t>(k)]);
      sum += term, absolute += std::abs(term);
    }
    if (!(std::abs(y[static_cast<std::size_t>(i)] - sum) <= 2 * epsilon * static_cast<double>(end - begin + 2) * absolute))
      return false;
  }
  return true;
}

/// Times a part with one NT; 0: the formula's for the rows of each rank. Collective.
Phases time_part(Context& context, Part& part, int threads, int repetitions) {
  Communicator& communicator = context.communicator();
  part.use(threads);
  Phases phases;
  phases.threads_per_row = part.threads();
  std::vector<double> all[4];
  const Timer whole;
  for (int r = -2; r < repetitions; ++r) {  // two rounds are warm-up
    communicator.barrier();
    double at[4] = {};
    const Timer timer;
    part.multiply();
    part.wait();
    at[0] = timer.seconds();
    part.gather();
    part.wait();
    at[1] = timer.seconds();
    part.restore();
    part.wait();
    at[2] = timer.seconds();
    at[3] = at[2], at[2] -= at[1], at[1] -= at[0];
    for (int i = 0; i < 4; ++i)
      if (r >= 0) all[i].push_back(at[i]);
    if (r >= 2 && communicator.all_reduce(whole.seconds(), Reduction::max) > kMostSeconds) break;
  }
  double slowest[4];
  for (int i = 0; i < 4; ++i) slowest[i] = median_of(all[i]);
  phases.products = communicator.all_gather(slowest[0]);
  communicator.all_reduce(std::span<double>(slowest), Reduction::max);
  phases.product = slowest[0], phases.gather = slowest[1], phases.restore = slowest[2], phases.whole = slowest[3];
  return phases;
}

/// Every NT on one order of the rows.
struct Sweep {
  std::vector<Phases> all;   ///< of each of kThreadsPerRow
  std::vector<int> formula;  ///< of each rank
  Phases best;
  bool right = true;
};

/// Collective. `is_right`: of y on the host.
Sweep sweep(Context& context, Part& part, int repetitions, const std::function<bool(const HostVector<double>&)>& is_right) {
  Sweep found;
  found.formula = context.communicator().all_gather(part.threads_by_formula());
  for (const int threads : kThreadsPerRow) {
    const Phases one = time_part(context, part, threads, repetitions);
    found.right = is_right(part.result()) && found.right;
    if (found.best.whole == 0 || one.whole < found.best.whole) found.best = one;
    found.all.push_back(one);
  }
  return found;
}

Cell us(double seconds) { return Cell::figure(1e6 * seconds, 2); }

}  // namespace

SortedOnRanks::SortedOnRanks() {
  std::vector<Column> columns{{"ranks", "ranks"}, {"order", "rows are"}, {"rank", "rank"}, {"formula", "formula"}};
  for (const int threads : kThreadsPerRow) columns.push_back({fmt::format("us_{}", threads), fmt::format("NT {}", threads)});
  sweep_.title = "Paper 3: µs of every NT on several ranks; * the formula's";
  sweep_.notes = {"rank all: product, gather and restore, by the slowest rank; else the product alone on that rank."};
  sweep_.columns = subject_columns(std::move(columns));
  table_.title = "Paper 3: sort, split, compute, restore on several ranks";
  table_.notes = {
      "as it is: rows cut at equal nonzeros from top to bottom, crs_paper with the best NT. sorted: rows by descending "
      "number of nonzeros, cut alike, the formula's NT on each rank, and beside it the best NT, the same on all ranks; y "
      "restored to the order of the rows.",
      "Columns keep their numbers; every rank has all of x before and all of y after. product, gather, restore: medians of "
      "the slowest rank, which waits for the device after each, so they add up to more than a pipeline would take. gain: "
      "over the best NT on one rank.",
      "one rank's CSR by: cuSPARSE on a GPU. On the host it is our own kernel csr_host; the paper compares with no library "
      "there.",
      fmt::format("uneven: the longest row has {:g} times the mean or more; the paper sorts such matrices only.",
                  kUnevenRows),
      "The paper, on two GTX 590: more than half of the matrices lost speed on two GPUs, and sorting made some slower "
      "still."};
  table_.columns = subject_columns({{"uneven", "uneven"},
                                    {"ranks", "ranks"},
                                    {"best_nt", "best NT"},
                                    {"as_is_us", "as it is µs"},
                                    {"as_is_gain", "gain"},
                                    {"formula_nt", "formula NT"},
                                    {"product_us", "sorted: product µs"},
                                    {"gather_us", "gather"},
                                    {"restore_us", "restore"},
                                    {"sorted_us", "whole"},
                                    {"sorted_gain", "gain"},
                                    {"sorted_best_nt", "sorted: best NT"},
                                    {"sorted_best_us", "whole"},
                                    {"other_csr", "one rank's CSR by"},
                                    {"other_csr_us", "µs"}});
}

void SortedOnRanks::add_sweep(const std::vector<Cell>& subject, std::string_view order, const std::vector<Phases>& all,
                              const std::vector<int>& formula) {
  for (int rank = -1; rank < std::ssize(formula); ++rank) {
    std::vector<Cell> line = subject;
    const bool whole = rank < 0;
    const int by_formula = whole ? 0 : formula[static_cast<std::size_t>(rank)];
    append(line, {Cell::word(std::string(order)), whole ? Cell::word("all") : Cell::count(rank),
                  whole ? Cell::none() : Cell::count(by_formula)});
    for (std::size_t i = 0; i < all.size(); ++i) {
      Cell cell = us(whole ? all[i].whole : all[i].products[static_cast<std::size_t>(rank)]);
      cell.text += kThreadsPerRow[i] == by_formula ? "*" : " ";
      line.push_back(std::move(cell));
    }
    sweep_.rows.push_back(std::move(line));
  }
}

void SortedOnRanks::measure(Communicator& all, Backend backend, int repetitions, const NamedMatrix& matrix,
                            const HostCsr& rows, ValueType type) {
  const HostVector<std::int64_t> by_length = order_by_row_length(rows.row_ptr);
  HostVector<std::int64_t> as_is(static_cast<std::size_t>(rows.rows));
  std::iota(as_is.begin(), as_is.end(), 0);
  const HostCsr sorted = rows_in_order(rows.view(), by_length);
  const RowStatistics lengths = row_statistics(rows.row_ptr);
  const bool uneven = static_cast<double>(lengths.max_row) >= kUnevenRows * lengths.mean_row;
  std::vector<int> counts;
  for (int ranks = 1; ranks < all.size(); ranks *= 2) counts.push_back(ranks);
  counts.push_back(all.size());
  double single = 0;
  for (const int ranks : counts) {
    Sweep found, found_sorted;
    Phases sorted_phases;
    double other = 0;
    const Refusal refused = on_first_ranks(all, ranks, all.timeout_seconds(), [&](Communicator& some) {
      Context context(some, backend == Backend::cuda ? BackendChoice::cuda : BackendChoice::host);
      const ContextScope scope(context);
      const auto right = [&](const HostVector<double>& y) { return is_right(rows, type, y); };
      {
        Part part(context, rows, as_is, type);
        found = sweep(context, part, repetitions, right);
      }
      Part part(context, sorted, by_length, type);
      sorted_phases = time_part(context, part, 0, repetitions);
      sorted_phases.right = right(part.result());
      found_sorted = sweep(context, part, repetitions, right);
      if (ranks > 1) return;
      const Kernel* const kernel = find_paper_kernel(backend == Backend::cuda ? "csr_cusparse" : "csr_host", backend);
      if (kernel == nullptr) return;
      Trial trial(rows.view(), type, context.stream(), {repetitions, nullptr, false});
      const StoredMatrix stored = trial.convert(find_format("csr"), {});
      for (const Policy& policy : kernel->policies(trial.input().rows()))
        if (const KernelResult one = trial.measure(*kernel, stored, policy); one.measured())
          other = other == 0 ? one.timing.median : std::min(other, one.timing.median);
    });
    std::vector<Cell> subject = Subject{matrix, rows.view(), type, rows.nnz()}.cells(), cells = subject;
    append(cells, {Cell::word(uneven ? "yes" : "no"), Cell::count(ranks)});
    if (!refused.why.empty()) {
      cells.push_back(Cell::word(refused.why));
      cells.resize(table_.columns.size(), Cell::none());
      table_.rows.push_back(std::move(cells));
      continue;
    }
    if (!found.right || !sorted_phases.right || !found_sorted.right)
      wrong_.insert(fmt::format("crs_paper on {} ranks of {}", ranks, matrix.name));
    const Phases& best = found.best;
    const Phases& sorted_best = found_sorted.best;
    if (ranks == 1) single = best.whole;
    append(cells, {Cell::count(best.threads_per_row), us(best.whole), Cell::figure(single / best.whole, 2),
                   Cell::count(sorted_phases.threads_per_row), us(sorted_phases.product), us(sorted_phases.gather),
                   us(sorted_phases.restore), us(sorted_phases.whole), Cell::figure(single / sorted_phases.whole, 2),
                   Cell::count(sorted_best.threads_per_row), us(sorted_best.whole),
                   other > 0 ? Cell::word(backend == Backend::cuda ? "cuSPARSE" : "csr_host, ours") : Cell::none(),
                   other > 0 ? us(other) : Cell::none()});
    table_.rows.push_back(std::move(cells));
    subject.push_back(Cell::count(ranks));
    add_sweep(subject, "as they are", found.all, found.formula);
    add_sweep(subject, "sorted", found_sorted.all, found_sorted.formula);
  }
}

}  // namespace shardmat::tools
