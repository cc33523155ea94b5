// What the handles of the C interface own, and what its functions share.
//
// A handle shares ownership of what it works with, so that handles may be destroyed in any order. Each function runs in
// in_context(): one at a time for a context, in the process that made it, and without letting an exception out.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/same_on_all_ranks.h"
#include "kernels/base/error.h"
#include "kernels/batched/c_status.h"
#include "runtime/api.h"
#include "runtime/c/shardmat.h"
#include "runtime/shared_gpu/group_matrix.h"
#include "runtime/shared_gpu/group_solver.h"

namespace shardmat::c {

struct ContextState {
  ContextState(Communicator ranks, const shardmat_context_options& options);
  /// The context of the ranks that own a device. Throws Error(usage) on a feeder.
  Context& own() { return context.context(); }
  Communicator communicator;
  GroupContext context;
  const pid_t process = getpid();
  std::optional<std::thread::id> only_thread;  ///< that may use it, because MPI was started for one thread
  std::map<void*, Buffer> memory;              ///< of shardmat_context_allocate()
  std::recursive_mutex mutex;                  ///< recursive: a monitor may ask for the sizes of a matrix
};

struct MatrixState {
  std::shared_ptr<ContextState> context;
  std::optional<GroupMatrix> matrix;
  std::map<std::int64_t, GroupProduct> kept, kept_transposed;  ///< of shardmat_spmm(), by columns; go first
};

/// The first member of each handle tells its kind: a pointer that a program cast to another kind is refused, and so is, as
/// far as its memory still tells, a handle that was destroyed.
enum class Kind : std::uint64_t {
  context = 0x5348'4152'444d'0001,
  matrix = 0x5348'4152'444d'0002,
  product = 0x5348'4152'444d'0003,
  solver = 0x5348'4152'444d'0004,
  batch_product = 0x5348'4152'444d'0005,
};
template <Kind kKind>
struct Tag {
  ~Tag() { kind = Kind{}; }
  bool right() const { return kind == kKind; }
  volatile Kind kind = kKind;  ///< volatile: the write before memory is freed stays
};
template <class Handle>
bool is_handle(const Handle* handle) {
  return handle != nullptr && handle->tag.right();
}
/// The status of a call whose handle is not one: NULL, or of another kind. `what`: "the matrix".
int no_handle(const void* handle, const char* what) noexcept;

/// Throws Error(usage) unless `condition` holds.
void require(bool condition, const char* what);
/// Throws Error(usage) for a number of entries below 0, or more than the memory of a machine can hold.
void require_size(std::int64_t count, std::size_t bytes_each, const char* what);
/// Throws Error(usage) in a process or a thread that may not use the context.
void require_own(const ContextState& context);
/// Where memory of the caller lies. Throws Error(usage) for memory of a GPU in a context on the host.
Device device_of(int on_device, const ContextState& context);
Dense dense(const shardmat_dense* given, const char* what, const ContextState& context);
inline std::string text(const char* given, std::string_view otherwise = {}) {
  return std::string(given == nullptr ? otherwise : std::string_view(given));
}
/// Calls f(stream, wait) with the stream that the caller named, or the context's.
template <class F>
void on_stream(ContextState& context, void* native, F&& f) {
  if (native == nullptr || context.context.backend() == Backend::host) return f(context.context.stream(), true);
  Stream stream = Stream::borrowed(context.context.device(), static_cast<CUstream_st*>(native));
  f(stream, context.context.has_feeders());
}

/// Throws Error(usage) if a struct of the caller has a size that cannot be, or sets what this library does not know.
void require_known(const void* given, std::size_t given_size, std::size_t size, const char* what);

/// A copy of the caller's struct; what it does not have yet is 0.
template <class T>
T read_struct(const T* given, const char* what) {
  T copy;
  std::memset(static_cast<void*>(&copy), 0, sizeof copy);
  if (given == nullptr) return copy;
  require_known(given, given->size, sizeof copy, what);
  std::memcpy(&copy, given, std::min(given->size, sizeof copy));
  return copy;
}

/// Writes as much as the caller's struct has room for.
template <class T>
void write_struct(T* to, T from, const char* what) {
  require(to != nullptr, what);
  require(to->size >= sizeof(std::size_t), what);
  from.size = std::min(to->size, sizeof from);
  std::memcpy(static_cast<void*>(to), &from, from.size);
}

/// A callback of the caller that may end what it watches.
struct Monitor {
  int (*call)(void*, std::int64_t, const double*, std::int64_t) = nullptr;
  void* user = nullptr;
  bool ended = false;

  void operator()(std::int64_t iterations, const std::vector<double>& numbers) {
    if (call != nullptr && call(user, iterations, numbers.data(), std::ssize(numbers)) != 0) ended = true;
  }
};

/// Rows as the caller gives them.
OwnRows own_rows(const shardmat_rows* given, ContextState& context);

/// Throws the same error on all ranks: what `list` throws on one, or Error(usage) that names what a rank was given otherwise
/// than rank 0. Collective.
void require_same(ContextState& context, const std::function<std::vector<Given>()>& list);
inline Given option(const char* name, const char* text) { return {name, text == nullptr ? "" : text, {}}; }
Given option(const char* name, double number);

/// Runs `work` for a context.
template <class F>
int in_context(const std::shared_ptr<ContextState>& context, F&& work) noexcept {
  return c_status([&] {
    require_own(*context);
    const std::lock_guard lock(context->mutex);
    work();
  });
}

/// Deletes a handle; in a child process nothing, because GPU, threads and ranks are the parent's.
template <class Handle>
void destroy(Handle* handle, const std::shared_ptr<ContextState>& context) noexcept {
  if (context->process != getpid()) return;
  std::shared_ptr<ContextState> keep = context;  // the mutex lives until it is unlocked
  const std::lock_guard lock(keep->mutex);
  delete handle;
}

}  // namespace shardmat::c

struct shardmat_context {
  shardmat::c::Tag<shardmat::c::Kind::context> tag;
  std::shared_ptr<shardmat::c::ContextState> state;
};
struct shardmat_matrix {
  shardmat::c::Tag<shardmat::c::Kind::matrix> tag;
  std::shared_ptr<shardmat::c::MatrixState> state;
};
struct shardmat_product {
  shardmat::c::Tag<shardmat::c::Kind::product> tag;
  std::shared_ptr<shardmat::c::MatrixState> matrix;
  shardmat::GroupProduct state;  ///< goes first
};
