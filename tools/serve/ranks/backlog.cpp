#include "tools/serve/ranks/backlog.h"

namespace shardmat::serve {

Backlog::Entry::Entry(Backlog& backlog, std::uint64_t matrix, std::int64_t columns)
    : backlog_(backlog), matrix_(matrix), columns_(columns) {
  backlog_.columns_[matrix_] += columns_;
}

Backlog::Entry::~Entry() {
  const auto found = backlog_.columns_.find(matrix_);
  found->second -= columns_;
  if (found->second == 0) backlog_.columns_.erase(found);
}

std::unique_ptr<Backlog::Entry> Backlog::add(std::uint64_t matrix, std::int64_t columns) {
  return std::make_unique<Entry>(*this, matrix, columns);
}

double Backlog::wait(const Seconds& seconds) const {
  double sum = 0;
  for (const auto& [matrix, columns] : columns_) sum += seconds(matrix, columns);
  return sum;
}

}  // namespace shardmat::serve
