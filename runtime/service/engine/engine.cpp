#include "runtime/service/engine/engine.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "partition/nodes/given_nodes.h"
#include "partition/source/partitioner.h"
#include "runtime/context/context_scope.h"
#include "runtime/maps/row_map.h"
#include "runtime/service/engine/background_load.h"
#include "runtime/service/engine/batches.h"
#include "runtime/service/engine/control.h"
#include "runtime/service/engine/front_end.h"
#include "runtime/service/engine/memories.h"
#include "runtime/service/engine/other_hosts.h"
#include "runtime/service/engine/resident_matrix.h"
#include "runtime/service/engine/resident_vectors.h"
#include "runtime/service/engine/running_jobs.h"
#include "runtime/service/wire/library.h"
#include "runtime/source/matrix_source.h"

namespace shardmat::service {
namespace {

using AnswerKind = decltype(Answer::what);

/// Links and choices of ranks on other hosts, where the front end's directory need not be. Throws Error(resources) if it is
/// not this user's alone.
std::filesystem::path directory_on_other_host(const std::string& control) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() /
      fmt::format("shardmat-{}-{:016x}", geteuid(), static_cast<std::uint64_t>(std::hash<std::string>{}(control)));
  struct stat status {};
  if ((mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) || lstat(directory.c_str(), &status) != 0)
    throw Error(ErrorKind::resources, fmt::format("{}: {}", directory.string(), std::strerror(errno)), "control");
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(ErrorKind::resources, fmt::format("{} is not a directory of this user alone; remove it", directory.string()),
                "control");
  return directory;
}

Hello hello_of(Context& context) {
  Hello hello;
  hello.rank = context.communicator().rank(), hello.ranks = context.communicator().size();
  const RankPlace& place = context.placement().ranks[static_cast<std::size_t>(hello.rank)];
  hello.host = place.host, hello.device = place.device;
  hello.threads = context.threads();
  hello.cpus = names_of_usable_cores();
  for (const KindOfJob& kind : kinds_of_jobs()) hello.job_settings.push_back({kind.name, kind.settings});
  hello.loads_in_background = BackgroundLoad::is_possible(context);
  hello.memory_bytes = available_memory(context.device());
  hello.copy_bandwidth = context.copy_bandwidth();
  return hello;
}

/// Memory freed by one matrix must be reusable by the next. By default glibc keeps it: after an array of up to 32 MiB is
/// freed, it takes arrays of that size from a heap, which shrinks only at its end. So large arrays stay mappings of their
/// own.
void give_freed_memory_back() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

/// Small arrays, too, give their pages back.
void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

class Engine {
 public:
  Engine(Context& context, const EngineOptions& options)
      : context_(context),
        front_end_(reach_front_end(options.control, context.communicator(), hello_of(context))),
        others_(context.communicator(), front_end_.home),
        arena_(take_arena()),
        links_(context.communicator().run_agreed([&] {
          return others_.at_home() ? std::filesystem::path(options.control).parent_path()
                                   : directory_on_other_host(options.control);
        })),
        choices_((links_ / "choices").string()),
        library_(options.library),
        vectors_(context),
        control_(front_end_.socket, context.communicator().local_size() < usable_cores()),
        memories_(arena_, context.device(), &others_) {}

  void run() {
    for (bool going_on = true; going_on;) {
      const Command command = control_.next();
      going_on = !std::holds_alternative<Quit>(command.what);
      if (const auto* load = std::get_if<Load>(&command.what); load != nullptr && in_background_) {
        load_in_background(*load);
        continue;
      }
      AnswerKind answer;
      try {
        answer = std::visit([&](const auto& what) { return carry_out(what); }, command.what);
      } catch (const AgreedError& error) {
        answer = Failed{error.kind(), error.what(), error.missing_bytes()};
      }
      control_.answer(std::move(answer));
    }
  }

 private:
  /// That of the front end, or memory of this host in its place.
  Arena take_arena() {
    std::optional<Arena> elsewhere = others_.make_memory(front_end_.arena_bytes);
    return std::move(elsewhere ? *elsewhere : *front_end_.arena);
  }

  /// On the thread of the engine or of a load.
  std::unique_ptr<ResidentMatrix> make_matrix(const Load& load, Context& context) const {
    Communicator& ranks = context.communicator();
    std::optional<LibraryFile> file, coordinates;
    ranks.run_agreed([&] {
      file.emplace(library_, load.source, link_directory(ranks.rank()));
      if (!load.coordinates.empty())  // it may have the name of the source
        coordinates.emplace(library_, load.coordinates, link_directory(ranks.rank()) / kCoordinates);
    });
    try {
      const MatrixSource source = open_matrix(file->path().string(), context);
      NodeFiles nodes;
      if (coordinates) nodes.coordinates = coordinates->path().string();
      return std::make_unique<ResidentMatrix>(source, context, load, choices_, nodes);
    } catch (const AgreedError& error) {
      std::string message = without_links(error.what(), load.source, "");
      if (!load.coordinates.empty()) message = without_links(std::move(message), load.coordinates, kCoordinates);
      throw AgreedError(error.kind(), message, error.setting(), error.missing_bytes());
    }
  }

  void load_in_background(const Load& load) {
    const ContextScope scope(context_);
    loading_.reset();  // one that failed
    control_.defer();
    loading_ = std::make_unique<BackgroundLoad>(
        context_, [this, load](Context& context) { return make_matrix(load, context); },
        [this](AnswerKind answer) { control_.answer_deferred(std::move(answer)); });
  }

  AnswerKind join(std::uint64_t number, OnRanks loaded) {
    return (matrices_[number] = std::move(loaded)).matrix->description();
  }

  AnswerKind carry_out(const Load& load) {
    const ContextScope scope(context_);
    return join(load.matrix, {nullptr, nullptr, make_matrix(load, context_)});
  }

  AnswerKind carry_out(const Adopt& adopt) {
    const ContextScope scope(context_);
    OnRanks loaded = loading_ == nullptr ? OnRanks() : loading_->take();
    loading_.reset();
    if (loaded.matrix == nullptr) throw AgreedError(ErrorKind::internal, "the ranks have loaded no matrix");
    return join(adopt.matrix, std::move(loaded));
  }

  AnswerKind carry_out(const Unload& unload) {
    const ContextScope scope(context_);
    jobs_.drop_all(unload.matrix);
    matrices_.erase(unload.matrix);
    trim_heap();
    return Done{};
  }

  AnswerKind carry_out(const Multiply& multiply) {
    const ContextScope scope(context_);
    return matrix(multiply.matrix).multiply(multiply, memories_, vectors_);
  }

  AnswerKind carry_out(const MultiplyBatches& batches) {
    const ContextScope scope(context_);
    return batches_.multiply(batches);
  }

  AnswerKind carry_out(const PutValues& put) {
    const ContextScope scope(context_);
    matrix(put.matrix).put_values(put, memories_);
    return Done{};
  }

  AnswerKind carry_out(const DropValues& drop) {
    if (const auto found = matrices_.find(drop.matrix); found != matrices_.end()) found->second.matrix->drop_values();
    return Done{};
  }

  AnswerKind carry_out(const MakeVector& make) {
    const ContextScope scope(context_);
    VectorMade made = vectors_.make(make, make.matrix == 0 ? equal_parts(make.size) : map_of(make));
    if (make.matrix != 0) made.matrix_bytes = matrix(make.matrix).description().bytes;
    return made;
  }

  AnswerKind carry_out(const WriteVector& write) {
    const ContextScope scope(context_);
    vectors_.write(write, memories_);
    return Done{};
  }

  AnswerKind carry_out(const ReadVector& read) {
    const ContextScope scope(context_);
    vectors_.read(read, memories_);
    return Done{};
  }

  AnswerKind carry_out(const DropVector& drop) {
    const ContextScope scope(context_);
    vectors_.drop(drop);
    return Done{};
  }

  AnswerKind carry_out(const Begin& begin) {
    const ContextScope scope(context_);
    return jobs_.begin(begin, matrix(begin.matrix), begin.mass == 0 ? nullptr : &matrix(begin.mass));
  }

  AnswerKind carry_out(const Slice& slice) {
    const ContextScope scope(context_);
    return jobs_.advance(slice);
  }

  AnswerKind carry_out(const Cancel& cancel) {
    const ContextScope scope(context_);
    jobs_.cancel(cancel);
    return Done{};
  }

  AnswerKind carry_out(const Spy& spy) { return matrix(spy.matrix).density(); }

  AnswerKind carry_out(const DropSolvers&) {
    const ContextScope scope(context_);
    for (const auto& [number, one] : matrices_) one.matrix->drop_idle_solvers();
    trim_heap();
    return Done{};
  }

  AnswerKind carry_out(const Attach& attach) {
    const int descriptor = control_.take_descriptor();
    std::optional<Arena> elsewhere = others_.make_memory(attach.bytes);
    context_.communicator().run_agreed([&] {
      if (elsewhere) return memories_.attach(attach.memory, std::move(*elsewhere));
      if (descriptor < 0) throw Error(ErrorKind::resources, "a rank has no descriptor left for the memory of a client");
      Arena memory = Arena::map(descriptor);
      if (memory.bytes() != attach.bytes) throw Error(ErrorKind::internal, "the memory of a client has another size");
      memory.close_descriptor();
      memories_.attach(attach.memory, std::move(memory));
    });
    return Done{};
  }

  AnswerKind carry_out(const Detach& detach) {
    memories_.detach(detach.memory);
    return Done{};
  }

  AnswerKind carry_out(const Invite&) { throw AgreedError(ErrorKind::internal, "this rank did not ask for an invitation"); }
  AnswerKind carry_out(const Ping&) { return Done{}; }
  AnswerKind carry_out(const Quit&) { return Done{}; }

  ResidentMatrix& matrix(std::uint64_t number) {
    const auto found = matrices_.find(number);
    if (found == matrices_.end()) throw AgreedError(ErrorKind::internal, "the ranks do not have this matrix");
    return *found->second.matrix;
  }

  /// That of the matrix, which then has a product for the vector's columns.
  std::shared_ptr<const RowMap> map_of(const MakeVector& make) {
    ResidentMatrix& of = matrix(make.matrix);
    if (make.columns > 1 && make.has_product) of.add_block_product(make.columns);
    return make.as_y ? of.y_rows() : of.x_rows();
  }

  std::shared_ptr<const RowMap> equal_parts(std::int64_t size) {
    Communicator& ranks = context_.communicator();
    const auto starts = even_starts(size, ranks.size());
    const auto rank = static_cast<std::size_t>(ranks.rank());
    HostVector<std::int64_t> ids;
    ranks.run_agreed([&] {
      const std::int64_t own = starts[rank + 1] - starts[rank];
      constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
      require_host_memory(own > kMost / 16 ? kMost : 16 * own, "the indices of a vector's entries");
      ids.resize(static_cast<std::size_t>(own));
      std::iota(ids.begin(), ids.end(), starts[rank]);
    });
    return RowMap::make({size, starts, std::move(ids), {}, nullptr}, context_);
  }

  static constexpr const char* kCoordinates = "coordinates";

  std::filesystem::path link_directory(int rank) const { return links_ / fmt::format("rank-{}", rank); }

  /// A message about a file names it as the library does. `folder`: of its link, below link_directory().
  std::string without_links(std::string message, const std::string& source, const char* folder) const {
    for (int rank = 0; rank < context_.communicator().size(); ++rank) {
      const std::string link = (link_directory(rank) / folder / std::filesystem::path(source).filename()).string();
      for (std::size_t at = message.find(link); at != std::string::npos; at = message.find(link, at + source.size()))
        message.replace(at, link.size(), source);
    }
    return message;
  }

  Context& context_;
  FrontEnd front_end_;
  OtherHosts others_;
  Arena arena_;
  std::filesystem::path links_;  ///< to files that are being read
  std::string choices_;          ///< of kernels, in the service's directory
  Library library_;
  std::map<std::uint64_t, OnRanks> matrices_;  ///< by number
  ResidentVectors vectors_;
  Control control_;
  Memories memories_;
  RunningJobs jobs_{vectors_, memories_};
  Batches batches_{context_, memories_, others_.at_home()};
  const bool in_background_ = BackgroundLoad::is_possible(context_);
  std::unique_ptr<BackgroundLoad> loading_;  ///< last: its thread uses the others
};

}  // namespace

void run_engine(Context& context, const EngineOptions& options) {
  give_freed_memory_back();
  Engine(context, options).run();
}

}  // namespace shardmat::service
