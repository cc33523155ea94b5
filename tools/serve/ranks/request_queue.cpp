#include "tools/serve/ranks/request_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardmat::serve {

int level_of(Priority priority, double since, double now) {
  const double steps = std::floor(std::max(0.0, now - since) / kAgeSeconds);
  return std::max(0, static_cast<int>(priority) - static_cast<int>(std::min<double>(steps, kLevels)));
}

int RequestQueue::Lane::level(const WaitingRequest& request, double now) const {
  return level_of(request.priority, std::max(request.arrived, served), now);
}

void RequestQueue::add(const WaitingRequest& request) {
  lanes_[{request.priority, request.client.name}].requests.push_back(request);
  earliest_ = std::min(earliest_, request.deadline);
}

bool RequestQueue::remove(std::uint64_t id) {
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    std::deque<WaitingRequest>& requests = lane->second.requests;
    if (std::erase_if(requests, [&](const WaitingRequest& request) { return request.id == id; }) == 0) continue;
    if (requests.empty()) lanes_.erase(lane);
    return true;
  }
  return false;
}

std::vector<std::uint64_t> RequestQueue::take_expired(double now) {
  std::vector<std::uint64_t> expired;
  if (now < earliest_) return expired;
  earliest_ = std::numeric_limits<double>::infinity();
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    std::erase_if(lane->second.requests, [&](const WaitingRequest& request) {
      if (request.deadline > now) {
        earliest_ = std::min(earliest_, request.deadline);
        return false;
      }
      expired.push_back(request.id);
      return true;
    });
    lane = lane->second.requests.empty() ? lanes_.erase(lane) : std::next(lane);
  }
  return expired;
}

std::vector<std::uint64_t> RequestQueue::clear() {
  std::vector<std::uint64_t> ids;
  for (const auto& [key, lane] : lanes_)
    for (const WaitingRequest& request : lane.requests) ids.push_back(request.id);
  lanes_.clear();
  return ids;
}

std::vector<RequestQueue::Head> RequestQueue::heads(double now, const MayBegin& may_begin) const {
  std::vector<Head> heads;
  for (const auto& [key, lane] : lanes_) {
    const WaitingRequest& first = lane.requests.front();
    if (may_begin(first.id)) heads.push_back({&first, lane.level(first, now)});
  }
  return heads;
}

void RequestQueue::pop(const WaitingRequest& head) {
  const auto lane = lanes_.find({head.priority, head.client.name});
  lane->second.in_product = true;
  lane->second.requests.pop_front();
  if (lane->second.requests.empty()) lanes_.erase(lane);
}

void RequestQueue::close_product(double now) {
  for (auto& [key, lane] : lanes_)
    if (std::exchange(lane.in_product, false)) lane.served = now;
}

std::int64_t RequestQueue::columns(int level, double now, std::int64_t most) const {
  std::int64_t sum = 0;
  for (const auto& [key, lane] : lanes_)
    for (const WaitingRequest& request : lane.requests) {
      if (sum >= most || request.alone || lane.level(request, now) > level) break;
      sum += request.columns;
    }
  return std::min(sum, most);
}

std::size_t RequestQueue::size() const {
  std::size_t sum = 0;
  for (const auto& [key, lane] : lanes_) sum += lane.requests.size();
  return sum;
}

void RequestQueue::count(std::map<std::string, std::size_t>& by_client) const {
  for (const auto& [key, lane] : lanes_) by_client[key.second] += lane.requests.size();
}

}  // namespace shardmat::serve
