#include <mpi.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "comm/mpi_session.h"
#include "kernels/base/memory_limits.h"
#include "runtime/c/handles.h"
#include "runtime/c/shardmat_mpi.h"

namespace shardmat::c {
namespace {

/// What a child process after fork() must know of its parent.
struct UsedBefore {
  std::mutex mutex;
  pid_t process = 0;
  bool device = false, threads = false;
};
UsedBefore& used_before() {
  static UsedBefore used;
  return used;
}

void refuse_child_of_user() {
  UsedBefore& used = used_before();
  const std::lock_guard lock(used.mutex);
  if (used.process == 0 || used.process == getpid() || !(used.device || used.threads)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("this process was forked from one that used {} with Shardmat, and cannot use {} again. Start it with "
                  "exec (Python: multiprocessing's start method \"spawn\"), or fork before the first context",
                  used.device ? "a GPU" : "host threads", used.device ? "it" : "them"));
}

void note_use(const GroupContext& context) {
  UsedBefore& used = used_before();
  const std::lock_guard lock(used.mutex);
  if (used.process != getpid()) used.device = used.threads = false;
  used.process = getpid();
  used.device = used.device || context.backend() == Backend::cuda;
  used.threads = used.threads || (context.owns() && context.context().threads() > 1);
}

double timeout_of(const shardmat_context_options& options) {
  return options.timeout_seconds == 0 ? 60 : options.timeout_seconds;
}

shardmat_context_options checked(const shardmat_context_options* given) {
  const shardmat_context_options options = read_struct(given, "shardmat_context_options");
  parse_backend_choice(text(options.backend, "auto"));
  require(options.threads >= 0, "the number of threads is negative");
  require(options.timeout_seconds >= 0, "the timeout is negative");
  require(options.owners >= 0, "the number of owners is negative");
  return options;
}

void make(Communicator ranks, const shardmat_context_options& options, bool one_thread, shardmat_context** context) {
  auto state = std::make_shared<ContextState>(std::move(ranks), options);
  if (one_thread) state->only_thread = std::this_thread::get_id();
  note_use(state->context);
  *context = new shardmat_context{{}, std::move(state)};
}

void make_on(MPI_Comm communicator, const shardmat_context_options* given, shardmat_context** context) {
  require(context != nullptr, "there is nowhere to put the context");
  *context = nullptr;
  int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE, main_thread = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  require(initialized != 0 && finalized == 0,
          "a context on a communicator needs MPI between MPI_Init_thread and MPI_Finalize, which the program calls");
  require(communicator != MPI_COMM_NULL, "the communicator is MPI_COMM_NULL");
  shardmat_context_options options{};
  std::exception_ptr wrong_options;
  try {
    options = checked(given);
  } catch (...) {
    wrong_options = std::current_exception();
  }
  const double timeout = timeout_of(options);
  Communicator ranks(communicator, timeout);
  ranks.watch_calls(timeout, [](const Error& why) {
    std::fprintf(stderr, "shardmat: %s. The call cannot return, so this process ends\n", why.what());
    MpiSession::leave(why.exit_code());
  });
  ranks.run_agreed([&] {
    refuse_child_of_user();
    MPI_Query_thread(&provided);
    MPI_Is_thread_main(&main_thread);
    require(provided >= MPI_THREAD_FUNNELED,
            "MPI was started for programs of one thread (MPI_THREAD_SINGLE, or MPI_Init()); call MPI_Init_thread(…, "
            "MPI_THREAD_SERIALIZED, …), or with Open MPI set OMPI_MPI_THREAD_LEVEL=2 in the environment");
    require(provided >= MPI_THREAD_SERIALIZED || main_thread != 0,
            "MPI was started with MPI_THREAD_FUNNELED by another thread; call MPI_Init_thread(…, MPI_THREAD_SERIALIZED, …)");
    if (wrong_options) std::rethrow_exception(wrong_options);
  });
  require_same_on_all_ranks(ranks, {option("the backend", options.backend), option("no_feeders", options.no_feeders),
                                    option("owners", options.owners)});
  make(std::move(ranks), options, provided < MPI_THREAD_SERIALIZED, context);
}

}  // namespace

ContextState::ContextState(Communicator ranks, const shardmat_context_options& options)
    : communicator(std::move(ranks)),
      context(communicator, {parse_backend_choice(text(options.backend, "auto")),
                             options.threads,
                             {options.no_feeders == 0, options.owners}}) {}

void require(bool condition, const char* what) {
  if (!condition) throw Error(ErrorKind::usage, what);
}

void require_size(std::int64_t count, std::size_t bytes_each, const char* what) {
  const std::int64_t most =
      (std::int64_t{1} << 47) / static_cast<std::int64_t>(bytes_each);  // of the addresses of a process
  if (count < 0 || count > most)
    throw Error(ErrorKind::usage, fmt::format("{} is {}; it must be 0 to {}", what, count, most));
}

int no_handle(const void* handle, const char* what) noexcept {
  return c_status([&] {
    if (handle == nullptr) throw Error(ErrorKind::usage, fmt::format("{} is NULL", what));
    throw Error(ErrorKind::usage, fmt::format("{} is a handle of another kind, or was destroyed", what));
  });
}

void require_own(const ContextState& context) {
  if (context.process != getpid())
    throw Error(ErrorKind::usage,
                fmt::format("this context belongs to process {}, from which this process was forked. A child cannot use it",
                            context.process));
  require(!context.only_thread || *context.only_thread == std::this_thread::get_id(),
          "MPI was started with MPI_THREAD_FUNNELED: only the thread that started it may use this context. Call "
          "MPI_Init_thread(…, MPI_THREAD_SERIALIZED, …)");
}

void require_same(ContextState& context, const std::function<std::vector<Given>()>& list) {
  if (context.communicator.size() > 1)
    require_same_on_all_ranks(context.communicator, context.communicator.run_agreed(list));
}

Given option(const char* name, double number) { return {name, fmt::format("{:.17g}", number), {}}; }

Device device_of(int on_device, const ContextState& context) {
  if (on_device == 0) return Device{};
  require(context.context.backend() == Backend::cuda,
          "memory of a GPU was given (on_device), but the context works on the host");
  return context.context.device();
}

Dense dense(const shardmat_dense* given, const char* what, const ContextState& context) {
  if (given == nullptr) throw Error(ErrorKind::usage, fmt::format("{} is NULL", what));
  const Device device = device_of(given->on_device, context);
  return {given->data,
          given->rows,
          given->columns,
          given->leading,
          given->column_major != 0 ? DenseOrder::column_major : DenseOrder::row_major,
          value_type_of_c(given->type, what),
          device};
}

void require_known(const void* given, std::size_t given_size, std::size_t size, const char* what) {
  constexpr std::size_t kMost = 4096;
  if (given_size < sizeof given_size || given_size > kMost)
    throw Error(ErrorKind::usage, fmt::format("{}.size is {}; set it to sizeof({})", what, given_size, what));
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = size; i < given_size; ++i)
    if (bytes[i] != 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("{} has a field that version " SHARDMAT_VERSION " does not know; use a later libshardmat", what));
}

}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

const char* shardmat_version(void) { return SHARDMAT_VERSION; }

int shardmat_context_create(const shardmat_context_options* options, shardmat_context** context) {
  return c_status([&] {
    require(context != nullptr, "there is nowhere to put the context");
    *context = nullptr;
    refuse_child_of_user();
    const shardmat_context_options known = checked(options);
    make(Communicator::alone(timeout_of(known)), known, false, context);
  });
}

int shardmat_context_create_mpi(MPI_Comm communicator, const shardmat_context_options* options, shardmat_context** context) {
  return c_status([&] { make_on(communicator, options, context); });
}

int shardmat_context_create_fortran(int32_t communicator, const shardmat_context_options* options,
                                    shardmat_context** context) {
  static_assert(sizeof(MPI_Fint) == sizeof communicator);
  return c_status([&] {
    int initialized = 0;
    MPI_Initialized(&initialized);
    make_on(initialized == 0 ? MPI_COMM_NULL : MPI_Comm_f2c(communicator), options, context);
  });
}

void shardmat_context_destroy(shardmat_context* context) {
  if (is_handle(context)) destroy(context, context->state);
}

int shardmat_context_give_up(shardmat_context* context) {
  if (!is_handle(context)) return no_handle(context, "the context");
  return c_status([&] {
    context->state->context.give_up(
        Error(ErrorKind::rank_lost, "the program gave up waiting for other ranks, because it ends"));
  });
}

int shardmat_context_get_info(shardmat_context* context, shardmat_context_info* info) {
  if (!is_handle(context)) return no_handle(context, "the context");
  return c_status([&] {
    const ContextState& state = *context->state;
    const bool owns = state.context.owns();
    const Device device = state.context.device();
    write_struct(info,
                 {0, state.communicator.rank(), state.communicator.size(), owns ? state.context.context().threads() : 1,
                  device.backend == Backend::cuda ? device.ordinal : -1, name(state.context.backend()).data(),
                  state.context.device_name().c_str(), owns ? 0 : 1},
                 "there is no shardmat_context_info with its size set");
  });
}

int shardmat_context_stream(shardmat_context* context, void** stream) {
  if (!is_handle(context)) return no_handle(context, "the context");
  return c_status([&] {
    require(stream != nullptr, "there is nowhere to put the stream");
    *stream = context->state->context.stream().native();
  });
}

int shardmat_context_allocate(shardmat_context* context, size_t bytes, void** memory) {
  if (memory != nullptr) *memory = nullptr;
  if (!is_handle(context)) return no_handle(context, "the context");
  if (memory == nullptr) return c_status([] { require(false, "there is nowhere to put the memory"); });
  return in_context(context->state, [&] {
    const Device device = context->state->context.device();
    context->state->context.stream_of(device);  // throws if this process does not see the device
    Buffer buffer(device, std::max<std::size_t>(bytes, 1));
    void* const place = buffer.data();
    context->state->memory.emplace(place, std::move(buffer));
    *memory = place;
  });
}

int shardmat_context_free(shardmat_context* context, void* memory) {
  if (!is_handle(context)) return no_handle(context, "the context");
  return in_context(context->state, [&] {
    require(memory == nullptr || context->state->memory.erase(memory) == 1,
            "this memory is not of shardmat_context_allocate()");
  });
}
