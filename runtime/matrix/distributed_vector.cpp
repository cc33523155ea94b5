#include "runtime/matrix/distributed_vector.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/parcels.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/vector.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {

DistributedVector::DistributedVector(const DistributedMatrix& matrix, VectorLayout layout, ValueType type,
                                     std::int64_t columns)
    : matrix_(matrix),
      layout_(layout),
      type_(type),
      rows_(layout == VectorLayout::rows ? matrix.rows() : matrix.cols()),
      local_rows_(std::ssize(layout == VectorLayout::rows ? matrix.row_ids() : matrix.x_ids())),
      columns_(columns) {
  matrix.context().communicator().together([&] {
    if (columns < 1) throw Error(ErrorKind::usage, fmt::format("a vector of {} columns; there must be 1 or more", columns));
    const auto bytes = static_cast<std::size_t>(local_rows_ * columns) * size_of(type);
    const Device device = matrix.context().device();
    require_memory(device, static_cast<std::int64_t>(bytes), "a distributed vector");
    memory_ = Buffer(device, bytes);
    fill_bytes(memory_.data(), 0, bytes, matrix.context().stream());
    matrix.context().stream().synchronize();
  });
}

Dense DistributedVector::view() const {
  return {memory_.data(), local_rows_, columns_, columns_, DenseOrder::row_major, type_, memory_.device()};
}

const HostVector<std::int64_t>& DistributedVector::ids() const {
  return layout_ == VectorLayout::rows ? matrix_.row_ids() : matrix_.x_ids();
}

std::span<const std::int64_t> DistributedVector::places() const {
  if (layout_ == VectorLayout::rows || matrix_.rows() == matrix_.cols()) return matrix_.local_order();
  return {};  // x of a matrix that is not square lies in its order
}

void DistributedVector::fill(double value, Stream& stream) {
  require_in_range(type_, std::span<const double>(&value, 1), "the value of all entries");
  fill_vector(type_, local_rows_ * columns_, value, memory_.data(), stream);
}

void DistributedVector::read(const VectorSource& source, Stream& stream) {
  matrix_.context().communicator().together([&] {
    if (source.columns() != columns_)
      throw Error(ErrorKind::usage,
                  fmt::format("{} has {} columns, but the vector has {}", source.name(), source.columns(), columns_));
    const HostVector<double> values = collect(source, ids());
    require_in_range(type_, values, source.name());
    to_device(memory_.data(), values, type_, stream);
  });
}

void DistributedVector::write(const std::string& path, const std::string& dataset, Stream& stream) const {
  const HostVector<double> values = to_host(memory_.data(), local_rows_ * columns_, type_, stream);
  write_vector(path, dataset, rows_, type_, ids(), values, matrix_.context().communicator(), columns_);
}

void DistributedVector::set_own(std::span<const double> values, Stream& stream) {
  if (std::ssize(values) != local_rows_ * columns_)
    throw Error(ErrorKind::usage,
                fmt::format("{} values for {} rows of {} columns on this rank", values.size(), local_rows_, columns_));
  require_in_range(type_, values, "the entries of the vector");
  const auto place = places();
  if (place.empty()) return to_device(memory_.data(), values, type_, stream);
  HostVector<double> moved(values.size());
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < place.size(); ++i)
    std::copy_n(values.begin() + place[i] * columns_, columns, moved.begin() + static_cast<std::ptrdiff_t>(i * columns));
  to_device(memory_.data(), moved, type_, stream);
}

HostVector<double> DistributedVector::own(Stream& stream) const {
  HostVector<double> values = to_host(memory_.data(), local_rows_ * columns_, type_, stream);
  const auto place = places();
  if (place.empty()) return values;
  HostVector<double> moved(values.size());
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < place.size(); ++i)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, moved.begin() + place[i] * columns_);
  return moved;
}

namespace {

/// What every rank has, on rank 0; on other ranks nothing.
template <class T>
Parcels<T> bring_to_root(const HostVector<T>& mine, Communicator& communicator) {
  Parcels<T> out{std::vector<std::int64_t>(static_cast<std::size_t>(communicator.size())), mine};
  out.counts[0] = std::ssize(mine);
  return exchange(communicator, out);
}

}  // namespace

HostVector<double> DistributedVector::gather(Stream& stream) const {
  Communicator& communicator = matrix_.context().communicator();
  const auto indices = bring_to_root(ids(), communicator);
  const auto values = bring_to_root(to_host(memory_.data(), local_rows_ * columns_, type_, stream), communicator);
  return communicator.together([&] {
    HostVector<double> all;
    if (communicator.rank() != 0) return all;
    require_host_memory(8 * rows_ * columns_, "a vector on rank 0");
    all.resize(static_cast<std::size_t>(rows_ * columns_));
    for (std::size_t i = 0; i < indices.items.size(); ++i)
      std::copy_n(values.items.begin() + static_cast<std::int64_t>(i) * columns_, columns_,
                  all.begin() + indices.items[i] * columns_);
    return all;
  });
}

void DistributedVector::scatter(std::span<const double> values, Stream& stream) {
  Communicator& communicator = matrix_.context().communicator();
  const auto indices = bring_to_root(ids(), communicator);
  const Parcels<double> out = communicator.together([&] {
    Parcels<double> parcels{std::vector<std::int64_t>(static_cast<std::size_t>(communicator.size())), {}};
    const std::int64_t expected = communicator.rank() == 0 ? rows_ * columns_ : 0;
    if (std::ssize(values) != expected)
      throw Error(ErrorKind::usage, fmt::format("{} values came to be scattered, but rank {} has {}", values.size(),
                                                communicator.rank(), expected));
    require_in_range(type_, values, "the entries of the vector");
    for (std::size_t p = 0; p < indices.counts.size(); ++p) parcels.counts[p] = indices.counts[p] * columns_;
    parcels.items.reserve(values.size());
    for (const std::int64_t index : indices.items)
      parcels.items.insert(parcels.items.end(), values.begin() + index * columns_, values.begin() + (index + 1) * columns_);
    return parcels;
  });
  const Parcels<double> mine = exchange(communicator, out);
  communicator.together([&] { to_device(memory_.data(), mine.items, type_, stream); });
}

}  // namespace shardmat
