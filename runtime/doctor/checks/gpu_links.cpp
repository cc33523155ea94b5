// Latency and bandwidth of NCCL between the GPUs of each pair of ranks.
#include <algorithm>
#include <limits>
#include <optional>

#include "comm/nccl/nccl_communicator.h"
#include "comm/placement.h"
#include "kernels/base/device.h"
#include "runtime/doctor/check_list.h"
#include "runtime/doctor/pairs.h"

namespace shardmat::doctor {
namespace {

constexpr int kTransfers = 20, kLargeTransfers = 5;
constexpr std::size_t kLargeTransfer = std::size_t{32} << 20;

/// Both directions at once, between GPUs of a pair.
class GpuPairs {
 public:
  GpuPairs(Communicator& communicator, Device device)
      : nccl_(communicator, device),
        stream_(device),
        out_(device, kLargeTransfer),
        in_(device, kLargeTransfer),
        begin_(device),
        end_(device) {
    fill_bytes(out_.data(), 0, kLargeTransfer, stream_);
    first_number_ = nccl_.next_transfer();
    for (int i = 1; i < 2 * communicator.size(); ++i) nccl_.next_transfer();
  }

  Link measure(int partner) {
    Link link;
    link.latency = fastest(partner, 8, kTransfers);
    link.bytes_per_second = static_cast<double>(kLargeTransfer) / fastest(partner, kLargeTransfer, kLargeTransfers);
    return link;
  }

 private:
  /// Seconds of a transfer, the least of `times`.
  double fastest(int partner, std::size_t bytes, int times) {
    const int number = first_number_ + 2 * partner + (bytes == kLargeTransfer ? 1 : 0);
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i <= times; ++i) {
      const Communicator::Transfer::Outgoing out{partner, out_.data(), bytes};
      const Communicator::Transfer::Incoming in{partner, in_.data(), bytes};
      begin_.record(stream_);
      nccl_.transfer(number, {&out, 1}, {&in, 1}, stream_);
      end_.record(stream_);
      nccl_.wait(stream_, "a transfer between two GPUs");
      if (i > 0) least = std::min(least, end_.seconds_since(begin_));
    }
    return least;
  }

  NcclCommunicator nccl_;
  Stream stream_;
  Buffer out_, in_;
  Event begin_, end_;
  int first_number_ = 0;  ///< of transfers: two for each partner
};

Json measure_gpu_links(Communicator& communicator, const Viewpoint& viewpoint) {
  if (communicator.size() == 1) return Json::object();
  if (communicator.all_reduce(static_cast<int>(!viewpoint.is_real()), Reduction::max) != 0)
    return {{"not_looked_at", "the GPUs are not real"}};
  if (communicator.all_reduce(static_cast<int>(viewpoint.deadline.is_over()), Reduction::max) != 0)
    return {{"not_looked_at", "no time was left to start NCCL"}};
  const Placement placement = communicator.run_agreed([&] { return place_ranks(communicator, BackendChoice::automatic); });
  if (placement.device.backend == Backend::host) return {{"not_looked_at", placement.why}};
  std::optional<GpuPairs> pairs;
  try {
    pairs.emplace(communicator, placement.device);
  } catch (const AgreedError& error) {
    return {{"failed", error.what()}};
  }
  return measure_pairs(communicator, viewpoint.deadline, true, [&](int partner) { return pairs->measure(partner); });
}

void judge_gpu_links(const Gathered& all, Findings& findings) {
  if (const auto why = get<std::string>(all.facts(0, "gpu_links"), "failed", ""); !why.empty())
    findings.push_back({"nccl_failed", "NCCL does not start: " + why, "Several GPUs cannot work together.",
                        "NCCL_DEBUG=WARN shows what it lacks: often /dev/shm, memory of a GPU, or an interface that "
                        "NCCL_SOCKET_IFNAME should name."});
  judge_pairs(all, "gpu_links",
              {"slow_gpu_link", "", "Every exchange waits for the slowest pair of GPUs.",
               "nvidia-smi topo -m and nvidia-smi nvlink -s show links that are missing or down; leave the GPU out, or have "
               "it repaired."},
              findings);
}

void show_gpu_links(const Gathered& all, Rows& rows) { show_pairs(all, "gpu_links", rows); }

}  // namespace

const Check kGpuLinks{.name = "gpu_links",
                      .title = "Links by NCCL",
                      .measure = measure_gpu_links,
                      .judge = judge_gpu_links,
                      .show = show_gpu_links};

}  // namespace shardmat::doctor
