#include "tools/serve/ranks/request_queue.h"

#include <algorithm>

namespace shardmat::serve {

void RequestQueue::add(const WaitingRequest& request) {
  requests_.push_back(request);
  columns_ += request.columns;
  earliest_ = std::min(earliest_, request.deadline);
}

bool RequestQueue::remove(std::uint64_t id) {
  const auto found =
      std::find_if(requests_.begin(), requests_.end(), [&](const WaitingRequest& request) { return request.id == id; });
  if (found == requests_.end()) return false;
  columns_ -= found->columns;
  requests_.erase(found);
  return true;
}

void RequestQueue::drop_front() {
  columns_ -= requests_.front().columns;
  requests_.pop_front();
}

std::vector<std::uint64_t> RequestQueue::take_expired(double now) {
  std::vector<std::uint64_t> expired;
  if (now < earliest_) return expired;
  earliest_ = std::numeric_limits<double>::infinity();
  std::erase_if(requests_, [&](const WaitingRequest& request) {
    if (request.deadline > now) {
      earliest_ = std::min(earliest_, request.deadline);
      return false;
    }
    expired.push_back(request.id);
    columns_ -= request.columns;
    return true;
  });
  return expired;
}

RequestQueue::Batch RequestQueue::take(const WidthTable& table, double now,
                                       const std::function<bool(std::uint64_t id)>& may_begin) {
  Batch batch;
  batch.expired = take_expired(now);
  if (requests_.empty() || !may_begin(requests_.front().id)) return batch;
  const auto take_front = [&] {
    batch.requests.push_back(requests_.front().id);
    batch.columns += requests_.front().columns;
    drop_front();
  };
  if (requests_.front().alone) {
    take_front();
    batch.width = batch.columns;
    return batch;
  }
  const std::int64_t most = table.columns_of_next(columns_, requests_.front().columns);
  while (!requests_.empty() && !requests_.front().alone && batch.columns + requests_.front().columns <= most &&
         may_begin(requests_.front().id))
    take_front();
  batch.width = table.for_columns(batch.columns).width;
  return batch;
}

std::vector<std::uint64_t> RequestQueue::clear() {
  std::vector<std::uint64_t> ids;
  for (const WaitingRequest& request : requests_) ids.push_back(request.id);
  requests_.clear();
  columns_ = 0;
  return ids;
}

}  // namespace shardmat::serve
