#include "runtime/matrix/distributed_vector.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/items_by_rank.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/context/context_scope.h"
#include "runtime/maps/range_route.h"
#include "runtime/matrix/dense_copy.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/row_view.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

/// A ContextScope for copies from and to host memory. First it waits, with a deadline, as earlier products may wait for
/// ranks.
struct CopyScope {
  CopyScope(const Context& context, Stream& stream) : scope(context) {
    context.wait(stream, "the work on a GPU before a vector is copied");
  }
  ContextScope scope;
};

}  // namespace

DistributedVector::DistributedVector(std::shared_ptr<const RowMap> map, ValueType type, std::int64_t columns)
    : map_(std::move(map)), type_(type), columns_(columns) {
  const ContextScope scope(context());
  context().communicator().run_agreed([&] {
    if (columns < 1) throw Error(ErrorKind::usage, fmt::format("a vector of {} columns; there must be 1 or more", columns));
    const auto bytes = static_cast<std::size_t>(local_rows() * columns) * size_of(type);
    const Device device = context().device();
    require_memory(device, static_cast<std::int64_t>(bytes), "a distributed vector");
    memory_ = Buffer(device, bytes);
    fill_bytes(memory_.data(), 0, bytes, context().stream());
    context().stream().synchronize();
  });
}

DistributedVector::DistributedVector(const DistributedMatrix& matrix, VectorLayout layout, ValueType type,
                                     std::int64_t columns)
    : DistributedVector(layout == VectorLayout::rows ? matrix.y_rows() : matrix.x_rows(), type, columns) {}

Dense DistributedVector::view() const { return row_view(memory_.data(), *map_, columns_, type_); }

void DistributedVector::require_like(const RowMap& map, std::int64_t columns, ValueType type,
                                     const std::string& what) const {
  require_row_map(what.c_str(), map_->number(), map, "the rows");
  if (columns_ != columns || type_ != type)
    throw Error(ErrorKind::usage, fmt::format("{} must have {} columns of {}, but has {} of {}", what, columns, name(type),
                                              columns_, name(type_)));
}

bool DistributedVector::has_same_entries(const ConstDense& values) const {
  return map_->route() == nullptr && map_->in_source_order() && values.type == type_ && values.device == memory_.device();
}

template <class F>
auto DistributedVector::agreed(F&& work) const {
  return map_->route() == nullptr ? work() : context().communicator().run_agreed(work);
}

void DistributedVector::fill(double value, Stream& stream) {
  const ContextScope scope(context());
  require_in_range(type_, std::span<const double>(&value, 1), "the value of all entries");
  fill_vector(type_, local_rows() * columns_, value, memory_.data(), stream);
}

void DistributedVector::read(const VectorSource& source, Stream& stream) {
  const CopyScope scope(context(), stream);
  context().communicator().run_agreed([&] {
    if (source.columns() != columns_)
      throw Error(ErrorKind::usage,
                  fmt::format("{} has {} columns, but the vector has {}", source.name(), source.columns(), columns_));
    if (const std::optional<double> value = source.constant()) {
      fill(*value, stream);
      return stream.synchronize();
    }
    const HostVector<double> values =
        map_->is_range() ? source.read(ids().front(), ids().back() + 1) : collect(source, ids());
    require_in_range(type_, values, source.name());
    to_device(memory_.data(), values, type_, stream);
  });
}

void DistributedVector::write(const std::string& path, const std::string& dataset, Stream& stream,
                              std::int64_t files) const {
  const CopyScope scope(context(), stream);
  Communicator& communicator = context().communicator();
  const HostVector<double> values =
      communicator.run_agreed([&] { return to_host(memory_.data(), local_rows() * columns_, type_, stream); });
  write_vector(path, dataset, rows(), type_, ids(), values, communicator, columns_, files);
}

void DistributedVector::put(std::span<const double> values, Stream& stream) {
  const std::span<const std::int64_t> place = map_->places();
  if (place.empty()) return to_device(memory_.data(), values, type_, stream);
  HostVector<double> moved(values.size());
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < place.size(); ++i)
    std::copy_n(values.begin() + place[i] * columns_, columns, moved.begin() + static_cast<std::ptrdiff_t>(i * columns));
  to_device(memory_.data(), moved, type_, stream);
}

HostVector<double> DistributedVector::take(Stream& stream) const {
  HostVector<double> values = to_host(memory_.data(), local_rows() * columns_, type_, stream);
  const std::span<const std::int64_t> place = map_->places();
  if (place.empty()) return values;
  HostVector<double> moved(values.size());
  const auto columns = static_cast<std::size_t>(columns_);
  for (std::size_t i = 0; i < place.size(); ++i)
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, moved.begin() + place[i] * columns_);
  return moved;
}

void DistributedVector::set_own(std::span<const double> values, Stream& stream) {
  const CopyScope scope(context(), stream);
  agreed([&] {
    if (std::ssize(values) != own_rows() * columns_)
      throw Error(ErrorKind::usage,
                  fmt::format("{} values for {} rows of {} columns on this rank", values.size(), own_rows(), columns_));
    require_in_range(type_, values, "the entries of the vector");
  });
  if (map_->route() == nullptr) return put(values, stream);
  const HostVector<double> mine = map_->route()->bring(values, columns_, context().communicator());
  agreed([&] { put(mine, stream); });
}

HostVector<double> DistributedVector::own(Stream& stream) const {
  const CopyScope scope(context(), stream);
  HostVector<double> values = agreed([&] { return take(stream); });
  if (map_->route() == nullptr) return values;
  return map_->route()->bring_back<double>(values, columns_, context().communicator());
}

void DistributedVector::set_own(const ConstDense& values, Stream& stream) {
  const CopyScope scope(context(), stream);
  const bool same = has_same_entries(values);
  const HostVector<double> by_rows = agreed([&] {
    require_shape("the entries", values, own_rows(), columns_, context().device());
    return same ? HostVector<double>() : to_host(values, stream);
  });
  if (!same) return set_own(by_rows, stream);
  copy_matrix(values, view(), stream);
  stream.synchronize();
}

void DistributedVector::own(const Dense& values, Stream& stream) const {
  const CopyScope scope(context(), stream);
  agreed([&] { require_shape("the entries", values, own_rows(), columns_, context().device()); });
  if (has_same_entries(values)) {
    copy_matrix(view(), values, stream);
    return stream.synchronize();
  }
  const HostVector<double> by_rows = own(stream);
  agreed([&] { from_host(by_rows, values, stream); });
}

namespace {

/// What every rank has, on rank 0; on other ranks nothing.
template <class T>
ItemsByRank<T> bring_to_root(const HostVector<T>& mine, Communicator& communicator) {
  ItemsByRank<T> out{std::vector<std::int64_t>(static_cast<std::size_t>(communicator.size())), mine};
  out.counts[0] = std::ssize(mine);
  return send_items(communicator, out);
}

}  // namespace

HostVector<double> DistributedVector::gather(Stream& stream) const {
  const CopyScope scope(context(), stream);
  Communicator& communicator = context().communicator();
  const auto indices = bring_to_root(ids(), communicator);
  const HostVector<double> mine =
      communicator.run_agreed([&] { return to_host(memory_.data(), local_rows() * columns_, type_, stream); });
  const auto values = bring_to_root(mine, communicator);
  return communicator.run_agreed([&] {
    HostVector<double> all;
    if (communicator.rank() != 0) return all;
    require_host_memory(8 * rows() * columns_, "a vector on rank 0");
    all.resize(static_cast<std::size_t>(rows() * columns_));
    for (std::size_t i = 0; i < indices.items.size(); ++i)
      std::copy_n(values.items.begin() + static_cast<std::int64_t>(i) * columns_, columns_,
                  all.begin() + indices.items[i] * columns_);
    return all;
  });
}

void DistributedVector::scatter(std::span<const double> values, Stream& stream) {
  const CopyScope scope(context(), stream);
  Communicator& communicator = context().communicator();
  const auto indices = bring_to_root(ids(), communicator);
  const ItemsByRank<double> out = communicator.run_agreed([&] {
    ItemsByRank<double> sorted_items{std::vector<std::int64_t>(static_cast<std::size_t>(communicator.size())), {}};
    const std::int64_t expected = communicator.rank() == 0 ? rows() * columns_ : 0;
    if (std::ssize(values) != expected)
      throw Error(ErrorKind::usage, fmt::format("{} values came to be scattered, but rank {} has {}", values.size(),
                                                communicator.rank(), expected));
    require_in_range(type_, values, "the entries of the vector");
    for (std::size_t p = 0; p < indices.counts.size(); ++p) sorted_items.counts[p] = indices.counts[p] * columns_;
    sorted_items.items.reserve(values.size());
    for (const std::int64_t index : indices.items)
      sorted_items.items.insert(sorted_items.items.end(), values.begin() + index * columns_,
                                values.begin() + (index + 1) * columns_);
    return sorted_items;
  });
  const ItemsByRank<double> mine = send_items(communicator, out);
  communicator.run_agreed([&] { to_device(memory_.data(), mine.items, type_, stream); });
}

}  // namespace shardmat
