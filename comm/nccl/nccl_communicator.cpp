#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_impl.h"
#include "comm/placement.h"
#include "kernels/base/cuda_check.h"

namespace shardmat {
namespace {

constexpr std::chrono::milliseconds kAbortGrace{2000}, kLeaveGrace{1000};
constexpr std::uint64_t kCallsPerMark = 64;

ncclDataType_t nccl_type(ValueType type) {
  switch (type) {
    case ValueType::f16:
      return ncclFloat16;
    case ValueType::bf16:
      return ncclBfloat16;
    case ValueType::f32:
      return ncclFloat32;
    case ValueType::f64:
      return ncclFloat64;
  }
  throw Error(ErrorKind::internal, "unknown value type");
}

bool capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  SHARDMAT_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

/// By default (NCCL_GRAPH_REGISTER=1) NCCL registers the memory that recorded collectives use, until it hears, some time
/// after its end, that the graph is gone. Memory allocated meanwhile at the same address NCCL 2.28 takes for that of before,
/// of which other ranks still have maps: between hosts of several GPUs each, all-gathers left x as it was, without an error.
/// Little is lost: memory of cudaMalloc() it cannot map for other processes, and windows are mapped anyway.
void let_graphs_register_nothing() {
  static const int once = setenv("NCCL_GRAPH_REGISTER", "0", 1);
  (void)once;
}

/// NCCL_COMM_BLOCKING=0 in the environment makes every communicator non-blocking; then calls end later. This waits without a
/// deadline: call it inside guarded().
ncclResult_t settled(ncclResult_t result, ncclComm_t comm) {
  while (result == ncclInProgress && comm != nullptr) {
    std::this_thread::yield();
    const ncclResult_t status = nccl().CommGetAsyncError(comm, &result);
    if (status != ncclSuccess) return status;
  }
  return result;
}

/// Until the device is idle, at most for `grace`. Our kernels were told to leave, and may still use windows that
/// ncclCommAbort() takes from under them. Those of NCCL that wait for a lost rank end by ncclCommAbort() alone.
void wait_for_device(int ordinal, std::chrono::milliseconds grace) {
  const auto idle = std::make_shared<std::atomic<bool>>(false);
  std::thread([idle, ordinal] {
    cudaSetDevice(ordinal);
    cudaDeviceSynchronize();
    idle->store(true);
  }).detach();
  for (const auto start = std::chrono::steady_clock::now();
       !idle->load() && std::chrono::steady_clock::now() - start < grace;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

std::string nccl_error_text(ncclResult_t result, ncclComm_t comm) {
  const char* detail = nccl().GetLastError(comm);
  return detail == nullptr || *detail == '\0' ? std::string(nccl().GetErrorString(result))
                                              : fmt::format("{}: {}", nccl().GetErrorString(result), detail);
}

NcclCommunicator::Impl::~Impl() {
  abort();
  const DeviceGuard guard(device, std::nothrow);
  for (cudaEvent_t mark : marks)
    if (mark != nullptr) cudaEventDestroy(mark);
  cudaFreeHost(ended);
}

ncclResult_t NcclCommunicator::Impl::guarded(std::function<ncclResult_t()> call, const char* what) {
  struct State {
    std::atomic<bool> done{false};
    ncclResult_t result = ncclInternalError;
    std::exception_ptr error;
  };
  const auto state = std::make_shared<State>();
  std::thread([state, call = std::move(call), ordinal = device.ordinal] {
    try {
      state->result = cudaSetDevice(ordinal) == cudaSuccess ? call() : ncclUnhandledCudaError;
    } catch (...) {
      state->error = std::current_exception();
    }
    state->done.store(true, std::memory_order_release);
  }).detach();
  communicator.wait_until([&] { return state->done.load(std::memory_order_acquire); }, what);
  if (state->error) std::rethrow_exception(state->error);
  return state->result;
}

void NcclCommunicator::Impl::check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  const std::string problem = fmt::format("{} failed: NCCL {}: {}", what, nccl_version(), nccl_error_text(result, comm));
  if (result == ncclRemoteError) communicator.lose(problem);
  const std::string message = fmt::format("rank {} ({}): {}. NCCL_DEBUG=WARN in the environment shows more",
                                          communicator.rank(), communicator.host(), problem);
  communicator.mark_broken(message);
  throw Error(ErrorKind::internal, message);
}

void NcclCommunicator::Impl::check_async(const char* what) {
  ncclResult_t result = ncclSuccess;
  if (nccl().CommGetAsyncError(comm, &result) != ncclSuccess) result = ncclInternalError;
  if (result != ncclSuccess && result != ncclInProgress)
    communicator.lose(fmt::format("{} failed: NCCL {}: {}", what, nccl_version(), nccl_error_text(result, comm)));
}

void NcclCommunicator::Impl::throttle(cudaStream_t stream, const char* what) {
  if (++calls % kCallsPerMark != 0) return;
  const std::uint64_t mark = calls / kCallsPerMark;
  cudaEvent_t& event = marks[mark % 2];
  const cudaEvent_t earlier = marks[(mark + 1) % 2];
  if (event == nullptr) SHARDMAT_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  SHARDMAT_CUDA_CHECK(cudaEventRecord(event, stream));
  if (earlier == nullptr) return;
  communicator.wait_until(
      [&] {
        const cudaError_t status = cudaEventQuery(earlier);
        if (status == cudaErrorNotReady) return check_async(what), false;
        SHARDMAT_CUDA_CHECK(status);
        return true;
      },
      what);
}

void NcclCommunicator::Impl::enqueue(const Signature& signature, Stream& stream, const std::function<ncclResult_t()>& call,
                                     const char* what) {
  communicator.wait_until([] { return true; }, what);  // throws if the communicator is broken
  const DeviceGuard guard(device);
  const bool recorded = capturing(stream.native());
  const bool known = connected.count(signature) != 0;
  if (known || recorded) {
    ncclResult_t result = call();
    if (result == ncclInProgress)  // see settled(); here the calling thread waits, so with the deadline
      communicator.wait_until(
          [&] {
            const ncclResult_t status = nccl().CommGetAsyncError(comm, &result);
            if (status != ncclSuccess) result = status;
            return result != ncclInProgress;
          },
          what);
    check(result, what);
    if (!recorded) throttle(stream.native(), what);
    return;
  }
  check(guarded([call, comm_ = comm] { return settled(call(), comm_); }, what), what);
  connected.insert(signature);
}

void NcclCommunicator::Impl::launch(Stream& stream, const std::function<void()>& kernel, const char* what) {
  communicator.wait_until([] { return true; }, what);  // throws if the communicator is broken
  const DeviceGuard guard(device);
  kernel();
  if (!capturing(stream.native())) throttle(stream.native(), what);
}

void NcclCommunicator::Impl::abort() noexcept {
  if (ended != nullptr) *static_cast<volatile int*>(ended) = 1;
  const ncclComm_t victim = std::exchange(comm, nullptr);
  if (victim == nullptr) return;
  try {
    const auto done = std::make_shared<std::atomic<bool>>(false);
    std::thread([victim, done, ordinal = device.ordinal, told = ended != nullptr] {
      cudaSetDevice(ordinal);
      try {
        if (told) wait_for_device(ordinal, kLeaveGrace);
      } catch (const std::exception&) {  // no thread to be had: without waiting
      }
      nccl().CommAbort(victim);
      done->store(true);
    }).detach();
    for (const auto start = std::chrono::steady_clock::now();
         !done->load() && std::chrono::steady_clock::now() - start < kLeaveGrace + kAbortGrace;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (const std::exception&) {  // no thread to be had; the end of the process ends NCCL too
  }
}

NcclCommunicator::NcclCommunicator(Communicator& communicator, Device device)
    : impl_(std::make_shared<Impl>(communicator, device)) {
  impl_->exceptions_at_start = std::uncaught_exceptions();
  if (device.backend != Backend::cuda) throw Error(ErrorKind::internal, "NCCL was asked to work on the host");
  let_graphs_register_nothing();
  ncclUniqueId id = communicator.run_agreed([&] {
    ncclUniqueId fresh{};
    nccl();  // which may be missing on one host alone
    const ncclResult_t result = communicator.rank() == 0 ? nccl().GetUniqueId(&fresh) : ncclSuccess;
    if (result != ncclSuccess)
      throw Error(ErrorKind::resources, "NCCL cannot start: " + nccl_error_text(result, nullptr) +
                                            ". Check NCCL_SOCKET_IFNAME, and NCCL_DEBUG=WARN for more");
    return fresh;
  });
  communicator.broadcast(std::span<ncclUniqueId>(&id, 1));
  communicator.run_agreed([&] {
    const auto made = std::make_shared<ncclComm_t>(nullptr);
    const ncclResult_t result = impl_->guarded(
        [made, id, size = communicator.size(), rank = communicator.rank()] {
          ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
          config.blocking = 1;
          const ncclResult_t started = nccl().CommInitRankConfig(made.get(), size, id, rank, &config);
          return settled(started, *made);
        },
        "joining the GPUs (NCCL)");
    if (result != ncclSuccess)
      throw Error(ErrorKind::resources, "NCCL cannot join the GPUs: " + nccl_error_text(result, nullptr) +
                                            ". NCCL_DEBUG=WARN in the environment shows more");
    impl_->comm = *made;
  });
  communicator.on_broken([inside = std::weak_ptr<Impl>(impl_)](const Error&) {
    if (const auto impl = inside.lock()) impl->abort();
  });
  impl_->why_no_windows = Memory(*this, 1).why_no_window();
}

NcclCommunicator::~NcclCommunicator() {
  Impl& impl = *impl_;
  if (impl.comm == nullptr) return;
  if (impl.communicator.broken() || std::uncaught_exceptions() > impl.exceptions_at_start) return;  // ~Impl aborts
  try {
    free_retired();
    impl.free_shared();
  } catch (const std::exception&) {  // the communicator is broken now, and says so at its next use
    return;
  }
  const ncclComm_t comm = std::exchange(impl.comm, nullptr);  // from here on there is nothing to abort
  try {
    impl.guarded(
        [comm] {
          const ncclResult_t result = settled(nccl().CommFinalize(comm), comm);
          return result == ncclSuccess ? nccl().CommDestroy(comm) : result;
        },
        "closing NCCL");
  } catch (const std::exception&) {  // the communicator is broken now, and says so at its next use
  }
}

void NcclCommunicator::all_gather_in_place(void* data, std::size_t count, ValueType type, Stream& stream) {
  if (count == 0) return;
  const std::size_t mine = static_cast<std::size_t>(impl_->communicator.rank()) * count * size_of(type);
  impl_->enqueue(
      {Impl::kAllGather, static_cast<int>(type), count}, stream,
      [=, comm = impl_->comm, to = stream.native()] {
        return nccl().AllGather(static_cast<char*>(data) + mine, data, count, nccl_type(type), comm, to);
      },
      "all-gather (NCCL)");
}

void NcclCommunicator::all_reduce_sum(double* data, std::size_t count, Stream& stream) {
  if (count == 0) return;
  impl_->enqueue(
      {Impl::kAllReduceSum, static_cast<int>(ValueType::f64), count}, stream,
      [=, comm = impl_->comm, to = stream.native()] {
        return nccl().AllReduce(data, data, count, ncclFloat64, ncclSum, comm, to);
      },
      "all-reduce (NCCL)");
}

void NcclCommunicator::transfer(int number, std::span<const Communicator::Transfer::Outgoing> sends,
                                std::span<const Communicator::Transfer::Incoming> receives, Stream& stream) {
  impl_->enqueue(
      {Impl::kTransfer, number, 0}, stream,
      [comm = impl_->comm, to = stream.native(), out = std::vector(sends.begin(), sends.end()),
       in = std::vector(receives.begin(), receives.end())] {
        ncclResult_t result = nccl().GroupStart();
        for (const auto& s : out)
          if (result == ncclSuccess) result = nccl().Send(s.data, s.bytes, ncclChar, s.to, comm, to);
        for (const auto& r : in)
          if (result == ncclSuccess) result = nccl().Recv(r.data, r.bytes, ncclChar, r.from, comm, to);
        const ncclResult_t end = nccl().GroupEnd();
        return result == ncclSuccess ? end : result;
      },
      "transfer (NCCL)");
}

int NcclCommunicator::next_transfer() { return impl_->transfers++; }

std::string NcclCommunicator::why_no_peer_access() const {
  return impl_->why_no_windows.empty() ? std::string() : impl_->why_no_windows + "; use halo";
}

void NcclCommunicator::wait(Stream& stream, const char* what) {
  constexpr int kPollsPerCheck = 64;
  int polls = 0;
  impl_->communicator.wait_until(
      [&] {
        if (stream.finished()) return true;
        if (++polls % kPollsPerCheck == 0) impl_->check_async(what);
        return false;
      },
      what);
}

}  // namespace shardmat
