// How a vector in host memory reaches the ranks, and how its entries come back. Each rank copies its slice of memory that
// all ranks share, by the code of the service; or rank 0 copies the whole vector and scatters it, as a program does in which
// only rank 0 has vectors.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/placement.h"
#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/text.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/engine/column_transfer.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/shared_arena.h"
#include "runtime/service/wire/arena.h"
#include "tools/bench/bench.h"
#include "tools/bench/machine.h"
#include "tools/bench/outputs.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {
namespace {

constexpr std::int64_t kMostEntries = std::numeric_limits<int>::max();  // MPI_Scatterv counts with int
constexpr std::uint64_t kPage = 4096;
constexpr unsigned char kPoison = 0xff;

struct Options {
  std::vector<std::int64_t> entries{2'097'152, 8'000'000, 30'000'000, 100'000'000};
  int repetitions = 21, threads = 0;
  double timeout = 60;
  std::string backend = "auto", json;
};

/// Entry i of all vectors here.
double entry(std::int64_t i) { return static_cast<double>(i) + 0.5; }

void check_mpi(int result, const char* function) {
  if (result != MPI_SUCCESS) throw Error(ErrorKind::internal, fmt::format("{} failed with MPI error {}", function, result));
}

/// A way to move a vector.
enum class Way { slices, nccl, mpi, rank_0 };
constexpr const char* kWays[] = {"slices", "NCCL", "MPI", "rank 0"};
enum class Direction { x, y };  ///< x: from host memory to the ranks; y: back

/// One vector of `entries` f64 in shared memory, and a slice of it on the device of each rank.
class Vector {
 public:
  /// Collective; throws the same error on all ranks.
  Vector(Context& context, std::int64_t entries)
      : context_(context),
        all_(context.communicator()),
        bytes_(static_cast<std::size_t>(entries) * sizeof(double)),
        starts_(even_starts(entries, all_.size())),
        arena_(service::make_shared_arena(all_, place_of_y() + bytes_)),
        memories_(arena_, context.device()),
        transfer_(context.stream()) {
    HostVector<std::int64_t> ids = all_.together([&] {
      HostVector<std::int64_t> own(mine());
      std::iota(own.begin(), own.end(), begin());
      return own;
    });
    map_ = RowMap::make({entries, starts_, std::move(ids), {}, nullptr}, context);
    all_.together([&] {
      slice_ = Buffer(context_.device(), std::max<std::size_t>(mine() * sizeof(double), 1));
      transfer_.reserve(block(), *map_);
      if (on_host()) return;
      staging_.reserve(mine() * sizeof(double), context_.device(), true);
      if (all_.rank() == 0) whole_ = Buffer(context_.device(), bytes_);
    });
    for (std::size_t p = 0; p + 1 < starts_.size(); ++p) {
      firsts_.push_back(static_cast<int>(starts_[p]));
      counts_.push_back(static_cast<int>(starts_[p + 1] - starts_[p]));
    }
    if (!on_host()) scatter_ = context_.nccl()->next_transfer(), gather_ = context_.nccl()->next_transfer();
    fill_x();
    all_.barrier();
  }

  /// Moves the vector; returns when it is complete for this rank.
  void move(Direction direction, Way way) {
    switch (way) {
      case Way::slices:
        return direction == Direction::x ? take_slice() : give_slice();
      case Way::nccl:
        return direction == Direction::x ? scatter_by_nccl() : gather_by_nccl();
      case Way::mpi:
        return direction == Direction::x ? scatter_by_mpi() : gather_by_mpi();
      case Way::rank_0:
        return copy_on_rank_0(direction);
    }
  }

  /// Moves the vector to memory that held something else, and compares all entries. Collective.
  void check(Direction direction, Way way) {
    prepare(direction, way);
    all_.barrier();
    move(direction, way);
    all_.barrier();                                                      // all slices of y have arrived
    const bool whole = direction == Direction::y || way == Way::rank_0;  // arrives, at rank 0
    const bool in_whole = whole || (way == Way::nccl && all_.rank() == 0);
    all_.together([&] {
      if (whole && all_.rank() != 0) return;
      HostVector<double> arrived(whole ? bytes_ / sizeof(double) : mine());
      const std::size_t bytes = arrived.size() * sizeof(double);
      if (direction == Direction::y) std::memcpy(arrived.data(), y(), bytes);
      else copy_to_host(arrived.data(), in_whole ? whole_.data() : slice_.data(), bytes, context_.stream());
      for (std::size_t i = 0; i < arrived.size(); ++i)
        if (const std::int64_t at = static_cast<std::int64_t>(i) + (whole ? 0 : begin()); arrived[i] != entry(at))
          throw Error(ErrorKind::verification, fmt::format("{} of {}: entry {} arrived as {}", kWays[static_cast<int>(way)],
                                                           direction == Direction::x ? "x" : "y", at, arrived[i]));
    });
  }

 private:
  bool on_host() const { return context_.device().backend == Backend::host; }
  std::int64_t begin() const { return starts_[static_cast<std::size_t>(all_.rank())]; }
  std::size_t mine() const { return static_cast<std::size_t>(starts_[static_cast<std::size_t>(all_.rank()) + 1] - begin()); }
  std::size_t first_byte(int rank) const {
    return static_cast<std::size_t>(starts_[static_cast<std::size_t>(rank)]) * sizeof(double);
  }
  std::size_t bytes_of(int rank) const { return first_byte(rank + 1) - first_byte(rank); }
  std::uint64_t place_of_y() const { return (bytes_ + kPage - 1) / kPage * kPage; }
  std::byte* x() { return memories_.at({.offset = 0}, bytes_).data(); }
  std::byte* y() { return memories_.at({.offset = place_of_y()}, bytes_).data(); }
  Dense block() const {
    return {slice_.data(),    static_cast<std::int64_t>(mine()), 1, 1, DenseOrder::row_major, ValueType::f64,
            context_.device()};
  }

  void fill_x() {
    x(), y();  // all ranks lock the pages before the first copy
    if (all_.rank() != 0) return;
    double* const values = reinterpret_cast<double*>(x());
    for (std::int64_t i = 0; i < starts_.back(); ++i) values[i] = entry(i);
  }

  /// What will be sent is right; where it goes are no numbers.
  void prepare(Direction direction, Way way) {
    Stream& stream = context_.stream();
    const bool holds_whole = whole_.bytes() > 0;
    if (holds_whole) fill_bytes(whole_.data(), kPoison, bytes_, stream);
    if (!on_host()) std::memset(staging_.data(), kPoison, mine() * sizeof(double));
    if (direction == Direction::x) {
      fill_bytes(slice_.data(), kPoison, slice_.bytes(), stream);
    } else {
      take_slice();
      if (all_.rank() == 0) std::memset(y(), kPoison, bytes_);
      if (holds_whole) copy_to_device(whole_.data(), x(), way == Way::rank_0 ? bytes_ : bytes_of(0), stream);
    }
    stream.synchronize();
  }

  void take_slice() {
    const std::byte* const columns[] = {x()};
    transfer_.take(columns, *map_, block());
    context_.stream().synchronize();
  }
  void give_slice() {
    const UnpackedColumn columns[] = {{y(), 1, 0}};
    transfer_.give(block(), *map_, columns);
  }

  /// On rank 0 the slice stays where it is in the whole vector.
  void scatter_by_nccl() {
    std::vector<Communicator::Transfer::Outgoing> sends;
    std::vector<Communicator::Transfer::Incoming> receives;
    if (all_.rank() == 0) {
      copy_to_device_async(whole_.data(), x(), bytes_, context_.stream());
      for (int p = 1; p < all_.size(); ++p) sends.push_back({p, whole_.as<std::byte>() + first_byte(p), bytes_of(p)});
    } else {
      receives.push_back({0, slice_.data(), bytes_of(all_.rank())});
    }
    context_.nccl()->transfer(scatter_, sends, receives, context_.stream());
    context_.wait(context_.stream(), "scattering a vector");
  }
  void gather_by_nccl() {
    std::vector<Communicator::Transfer::Outgoing> sends;
    std::vector<Communicator::Transfer::Incoming> receives;
    if (all_.rank() == 0)
      for (int p = 1; p < all_.size(); ++p) receives.push_back({p, whole_.as<std::byte>() + first_byte(p), bytes_of(p)});
    else sends.push_back({0, slice_.data(), bytes_of(all_.rank())});
    context_.nccl()->transfer(gather_, sends, receives, context_.stream());
    if (all_.rank() == 0) copy_to_host_async(y(), whole_.data(), bytes_, context_.stream());
    context_.wait(context_.stream(), "gathering a vector");
  }

  /// On rank 0 the slice of a GPU is copied from and to shared memory itself.
  void scatter_by_mpi() {
    void* const to = on_host() ? slice_.data() : all_.rank() == 0 ? MPI_IN_PLACE : staging_.data();
    check_mpi(MPI_Scatterv(x(), counts_.data(), firsts_.data(), MPI_DOUBLE, to, static_cast<int>(mine()), MPI_DOUBLE, 0,
                           all_.native()),
              "MPI_Scatterv");
    if (!on_host())
      copy_to_device(slice_.data(), all_.rank() == 0 ? static_cast<void*>(x()) : staging_.data(), mine() * sizeof(double),
                     context_.stream());
    context_.stream().synchronize();
  }
  void gather_by_mpi() {
    if (!on_host())
      copy_to_host(all_.rank() == 0 ? static_cast<void*>(y()) : staging_.data(), slice_.data(), mine() * sizeof(double),
                   context_.stream());
    const void* const from = on_host() ? slice_.data() : all_.rank() == 0 ? MPI_IN_PLACE : staging_.data();
    check_mpi(MPI_Gatherv(from, static_cast<int>(mine()), MPI_DOUBLE, y(), counts_.data(), firsts_.data(), MPI_DOUBLE, 0,
                          all_.native()),
              "MPI_Gatherv");
  }

  void copy_on_rank_0(Direction direction) {
    if (all_.rank() != 0) return;
    if (direction == Direction::x) copy_to_device_async(whole_.data(), x(), bytes_, context_.stream());
    else copy_to_host_async(y(), whole_.data(), bytes_, context_.stream());
    context_.stream().synchronize();
  }

  Context& context_;
  Communicator& all_;
  std::size_t bytes_;
  std::vector<std::int64_t> starts_;  ///< of the slices
  std::vector<int> firsts_, counts_;  ///< the same for MPI
  service::Arena arena_;
  service::Memories memories_;
  service::ColumnTransfer transfer_;
  std::shared_ptr<const RowMap> map_;
  Buffer slice_, whole_;  ///< whole_: on the GPU of rank 0
  HostBuffer staging_;    ///< a slice on its way between MPI and a GPU
  int scatter_ = 0, gather_ = 0;
};

struct Row {
  std::int64_t entries;
  Direction direction;
  double slices = 0, mpi = 0;
  std::optional<double> nccl, rank_0;  ///< on GPUs

  /// How many times as long the faster way over rank 0 takes.
  double speed_up() const { return std::min(mpi, nccl.value_or(mpi)) / slices; }
};

struct Report {
  std::string command, device, backend;
  int ranks, threads, repetitions;
  std::vector<Row> rows;

  std::string text() const {
    const auto time = [](const Row& row, std::optional<double> seconds) {
      if (!seconds) return std::string();
      return fmt::format("{:.1f} µs {:5.1f} GB/s", 1e6 * *seconds,
                         1e-9 * sizeof(double) * static_cast<double>(row.entries) / *seconds);
    };
    const bool gpus = rows.front().nccl.has_value();
    std::string text = fmt::format(
        "{} ranks, {}; vectors of f64; medians of {} rounds, from the first rank's start to the last rank's end\n"
        "slices: each rank copies its slice of shared memory\nMPI: MPI_Scatterv or MPI_Gatherv in host memory{}\n\n",
        ranks, device, repetitions,
        gpus ? ", and a copy of each slice\nNCCL: rank 0 copies the vector, and NCCL scatters or gathers it\n"
               "rank 0: rank 0 copies the vector; nothing else"
             : "");
    const auto line = [&](const auto& entries, const char* where, const auto& slices, const auto& mpi, const auto& nccl,
                          const auto& rank_0, const auto& ratio) {
      text += fmt::format("{:>13} {:>11} {:>22} {:>22} ", entries, where, slices, mpi);
      if (gpus) text += fmt::format("{:>22} {:>22} ", nccl, rank_0);
      text += fmt::format("{:>8}\n", ratio);
    };
    line("entries", "", "slices", "MPI", "NCCL", "rank 0", "ratio");
    for (const Row& row : rows)
      line(human_count(row.entries), row.direction == Direction::x ? "x to ranks" : "y to host", time(row, row.slices),
           time(row, row.mpi), time(row, row.nccl), time(row, row.rank_0), fmt::format("{:.2f} x", row.speed_up()));
    return text + fmt::format("\nratio: time of {} over that of slices\n", gpus ? "the faster of MPI and NCCL" : "MPI");
  }

  nlohmann::ordered_json json() const {
    const auto number = [](std::optional<double> value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json vectors = nlohmann::ordered_json::array();
    for (const Row& row : rows)
      vectors.push_back({{"entries", row.entries},
                         {"bytes", row.entries * static_cast<std::int64_t>(sizeof(double))},
                         {"direction", row.direction == Direction::x ? "x" : "y"},
                         {"slices_s", row.slices},
                         {"nccl_s", number(row.nccl)},
                         {"mpi_s", row.mpi},
                         {"rank_0_copy_s", number(row.rank_0)},
                         {"ratio", row.speed_up()}});
    return {{"command", command}, {"ranks", ranks},     {"backend", backend},
            {"device", device},   {"threads", threads}, {"repetitions", repetitions},
            {"vectors", vectors}};
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

/// From the first rank's start to the last rank's end: all ranks read one host's clock.
double seconds_of(Communicator& all, const std::function<void()>& move) {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  all.barrier();
  const double start = now();
  move();
  const double end = now();
  return all.all_reduce(end, Reduction::max) - all.all_reduce(start, Reduction::min);
}

/// Rows of both directions. The ways alternate.
std::vector<Row> measure(Context& context, std::int64_t entries, int repetitions) {
  Communicator& all = context.communicator();
  Vector vector(context, entries);
  std::vector<Way> ways{Way::slices, Way::mpi};
  const bool gpus = context.device().backend == Backend::cuda;
  if (gpus) ways.insert(ways.end(), {Way::nccl, Way::rank_0});
  std::vector<Row> rows;
  for (const Direction direction : {Direction::x, Direction::y}) {
    std::vector<std::vector<double>> times(ways.size());
    for (int round = -1; round < repetitions; ++round)
      for (std::size_t w = 0; w < ways.size(); ++w) {
        if (round == -1) vector.check(direction, ways[w]);
        else times[w].push_back(seconds_of(all, [&] { vector.move(direction, ways[w]); }));
      }
    for (const Way way : ways) vector.check(direction, way);
    Row row{entries, direction, median(times[0]), median(times[1]), {}, {}};
    if (gpus) row.nccl = median(times[2]), row.rank_0 = median(times[3]);
    rows.push_back(row);
  }
  return rows;
}

int run(const Options& o, Communicator& all) {
  all.together([&] {
    if (all.size() == 1)
      throw Error(ErrorKind::usage, "there is one rank, which gets the whole vector; start several with mpirun");
    if (all.rank() == 0) require_outputs({o.json, ""}, "", {});
  });
  Context context(all, parse_backend_choice(o.backend), o.threads);
  const ContextScope scope(context);
  Report report{command_line(),
                context.placement().ranks.front().device,
                std::string(name(context.device().backend)),
                all.size(),
                context.threads(),
                o.repetitions,
                {}};
  const GrowingReport growing({o.json, ""}, "");
  for (const std::int64_t entries : o.entries) {
    for (const Row& row : measure(context, entries, o.repetitions)) report.rows.push_back(row);
    all.together([&] {
      if (all.rank() == 0) growing.save([&] { return report.json(); });
    });
  }
  all.together([&] {
    if (all.rank() != 0) return;
    if (o.json != "-") fmt::print("{}", report.text());
    growing.finish(report.json());
  });
  return 0;
}

}  // namespace

std::function<int()> add_bench_slices(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand(
      "slices",
      "Copy slices of a vector in shared host memory to all ranks and back, compared with rank 0 and a scatter or gather");
  auto options = std::make_shared<Options>();
  app.add_option("--entries", options->entries, "entries of a vector, f64; several: 2000000,8000000")
      ->delimiter(',')
      ->check(whole_number(1, kMostEntries))
      ->capture_default_str();
  app.add_option("--repetitions", options->repetitions, "take the median of N rounds")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--backend", options->backend, "where slices go; auto takes the GPUs if there is one for every rank")
      ->check(one_of({"auto", "host", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", options->threads,
                 "host threads of each rank (default: OMP_NUM_THREADS, else its share of the cores)")
      ->check(whole_number(1, 1 << 16));
  add_json_option(app, options->json);
  app.add_option("--timeout", options->timeout, "stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str();
  app.footer("\nExample:\n  mpirun -n 4 shardmat bench slices\n");
  return [app, options] { return run_ranks(app, options->timeout, [&](Communicator& all) { return run(*options, all); }); };
}

}  // namespace shardmat::tools
