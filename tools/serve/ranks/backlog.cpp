#include "tools/serve/ranks/backlog.h"

#include <algorithm>
#include <vector>

namespace shardmat::serve {

void Backlog::add(Columns& columns, std::uint64_t matrix, std::int64_t more) {
  const auto place = columns.try_emplace(matrix, 0).first;
  place->second += more;
  if (place->second == 0) columns.erase(place);
}

Backlog::Entry::Entry(Backlog& backlog, Work work) : backlog_(backlog), work_(std::move(work)) {
  Waiting& own = backlog_.waiting_[{work_.priority, work_.client.name}];
  own.weight = work_.client.weight;
  own.units += work_.units;
  add(own.columns, work_.matrix, work_.columns);
  add(backlog_.all_, work_.matrix, work_.columns);
}

Backlog::Entry::~Entry() {
  const auto own = backlog_.waiting_.find({work_.priority, work_.client.name});
  add(own->second.columns, work_.matrix, -work_.columns);
  own->second.units -= work_.units;
  add(backlog_.all_, work_.matrix, -work_.columns);
  if (own->second.columns.empty()) backlog_.waiting_.erase(own);
}

double Backlog::wait(const Work& work, const Seconds& seconds, double seconds_of_unit) const {
  std::map<std::uint64_t, double> seconds_of_column;  // as part of the products that are to come
  for (const auto& [matrix, columns] : all_)
    seconds_of_column[matrix] = seconds(matrix, columns) / static_cast<double>(columns);
  const auto cost = [&](const Waiting& waiting) {
    double sum = seconds_of_unit * static_cast<double>(waiting.units);
    for (const auto& [matrix, count] : waiting.columns) sum += seconds_of_column.at(matrix) * static_cast<double>(count);
    return sum;
  };
  double urgent = 0, own = 0;
  std::vector<std::pair<double, double>> others;  // seconds and weight
  for (const auto& [owner, waiting] : waiting_) {
    const auto& [priority, name] = owner;
    if (priority > work.priority) continue;
    const double here = cost(waiting);
    if (priority < work.priority) urgent += here;
    else if (name == work.client.name) own = here;
    else others.emplace_back(here, waiting.weight);
  }
  const double turn = own + seconds(work.matrix, work.columns) + seconds_of_unit * static_cast<double>(work.units);
  double wait = urgent + own;
  for (const auto& [here, weight] : others) wait += std::min(here, turn * weight / work.client.weight);
  return wait;
}

}  // namespace shardmat::serve
