// Latency and bandwidth of MPI between each pair of ranks, from host memory to host memory.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/timer.h"
#include "runtime/doctor/check_list.h"
#include "runtime/doctor/pairs.h"

namespace shardmat::doctor {
namespace {

constexpr int kTag = 71, kRoundTrips = 40, kFewestLarge = 3, kMostLarge = 5;
constexpr std::size_t kLargeBytes = std::size_t{4} << 20;
constexpr int kMostPairsOneByOne = 120;
constexpr double kLargeSeconds = 0.02;
constexpr double kMostSeconds = 0.2;  // of a link so slow that its first figure says enough

/// Sends `bytes` to the partner and back. The lower rank begins.
void round_trip(Communicator& communicator, int partner, std::vector<char>& data, std::size_t bytes) {
  if (communicator.rank() < partner) {
    communicator.send(data.data(), bytes, partner, kTag);
    communicator.receive(data.data(), bytes, partner, kTag);
  } else {
    communicator.receive(data.data(), bytes, partner, kTag);
    communicator.send(data.data(), bytes, partner, kTag);
  }
}

Link measure_link(Communicator& communicator, int partner, std::vector<char>& data) {
  std::vector<double> seconds;
  for (int i = 0; i < kRoundTrips; ++i) {
    const Timer timer;
    round_trip(communicator, partner, data, 8);
    seconds.push_back(timer.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  Link link;
  link.latency = seconds[seconds.size() / 4] / 2;  // others' use of the cores makes some of them long
  double least = std::numeric_limits<double>::max();
  const Timer all;
  for (int i = 0; i < kMostLarge; ++i) {
    const Timer timer;
    round_trip(communicator, partner, data, kLargeBytes);
    least = std::min(least, timer.seconds());
    const bool too_few = i + 1 < kFewestLarge && all.seconds() < kMostSeconds;
    char go_on = too_few || all.seconds() < kLargeSeconds ? 1 : 0;  // the lower rank decides
    if (communicator.rank() < partner) communicator.send(&go_on, 1, partner, kTag);
    else communicator.receive(&go_on, 1, partner, kTag);
    if (go_on == 0) break;
  }
  link.bytes_per_second = 2 * static_cast<double>(kLargeBytes) / least;
  return link;
}

Json measure_links(Communicator& communicator, const Viewpoint& viewpoint) {
  if (communicator.size() == 1) return Json::object();
  std::vector<char> data(kLargeBytes);
  const bool at_once = communicator.size() * (communicator.size() - 1) / 2 > kMostPairsOneByOne;
  return measure_pairs(communicator, viewpoint.deadline.half(), at_once,  // GPUs have the rest
                       [&](int partner) { return measure_link(communicator, partner, data); });
}

void judge_links(const Gathered& all, Findings& findings) {
  judge_pairs(all, "links",
              {"slow_link", "", "Every exchange waits for the slowest pair of ranks.",
               "Look at the hosts' network (ibstat, ethtool), at what else uses it, and at binding; leave the host out if "
               "it stays."},
              findings);
}

void show_links(const Gathered& all, Rows& rows) { show_pairs(all, "links", rows); }

}  // namespace

const Check kLinks{
    .name = "links", .title = "Links by MPI", .measure = measure_links, .judge = judge_links, .show = show_links};

}  // namespace shardmat::doctor
