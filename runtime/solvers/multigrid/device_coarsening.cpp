#include "runtime/solvers/multigrid/device_coarsening.h"

#include <limits>
#include <utility>

#include "comm/communicator.h"

namespace shardmat::multigrid {
namespace {

using blocks::BlockRows;

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

/// A copy without values.
BlockRows pattern_of(const BlockRows& a, Stream& stream) {
  BlockRows out;
  out.row_size = a.row_size, out.col_size = a.col_size;
  out.count = a.count, out.cols = a.cols, out.blocks = a.blocks;
  for (const auto& [from, to] : {std::pair{&a.start, &out.start}, std::pair{&a.column, &out.column}}) {
    *to = Buffer(stream.device(), from->bytes());
    if (from->bytes() > 0) copy_on_device(to->data(), from->data(), from->bytes(), stream);
  }
  return out;
}

template <class T>
HostVector<T> downloaded(const Buffer& from, Stream& stream) {
  HostVector<T> to(from.bytes() / sizeof(T));
  if (!to.empty()) copy_to_host(to.data(), from.data(), from.bytes(), stream);
  return to;
}

}  // namespace

DeviceCoarsening::DeviceCoarsening(const DeviceMatrix& a, blocks::Aggregates aggregates, const DeviceModes& modes,
                                   std::int64_t least, Stream& stream)
    : fine_(a.nodes), aggregates_(std::move(aggregates)) {
  Communicator& ranks = fine_->ranks();
  const int m = modes.count;
  on_each_device(ranks,
                 [&] { t_ = blocks::tentative(aggregates_, modes.value, a.rows.row_size, m, coarse_modes_, stream); });
  made_ = moved_nodes(aggregates_.count, least, ranks);
  if (is_alone()) {
    p_cols_ = made_;
    return;
  }
  move_home(*made_, coarse_modes_, std::int64_t{m} * m, stream);
  t_.cols = made_->local_count();
  all_t_ = with_ghost_rows(t_, *made_, *fine_, stream);
  p_cols_ = all_t_.cols;
  on_each_device(ranks, [&] { column_of_node_ = blocks::renumbered(aggregates_.of_node, all_t_.number, stream); });
}

void DeviceCoarsening::smooth(const DeviceMatrix& a, const Buffer& inverse, double omega, Stream& stream) {
  on_each_device(fine_->ranks(), [&] {
    const bool first = p_.start.bytes() == 0;
    if (first) p_ = blocks::product_pattern(a.rows, all_t(), kAny, longest_p_, stream);
    blocks::multiply_values(a.rows, all_t(), longest_p_, p_, stream);
    blocks::smooth(p_, t_, is_alone() ? aggregates_.of_node : column_of_node_, inverse, omega, stream);
    if (first) transposed_p_ = blocks::transposed(p_, block_of_, stream);
    else blocks::transpose_values(p_, block_of_, transposed_p_, stream);
  });
  copy_of_p_.reset();
  if (!is_alone()) all_p_ = with_ghost_rows(p_, *p_cols_, *fine_, stream, all_p_.cols);
}

std::optional<DeviceMatrix> DeviceCoarsening::multiply(const DeviceMatrix& a, const Buffer& diagonal, double most,
                                                       Stream& stream) {
  Communicator& ranks = fine_->ranks();
  const bool bounded = most < static_cast<double>(kAny);
  const std::int64_t most_here = bounded ? static_cast<std::int64_t>(most) : kAny;
  BlockRows next;
  on_each_device(ranks, [&] {
    ap_ = blocks::product_pattern(a.rows, all_p(), kAny, longest_ap_, stream);
    next = blocks::product_pattern(transposed_p_, ap_, most_here, longest_part_, stream);
  });
  if (bounded && ranks.all_reduce(static_cast<double>(next.blocks), Reduction::sum) > most) return std::nullopt;
  on_each_device(ranks, [&] {
    part_ = pattern_of(next, stream);
    fill_part(a.rows, next, stream);
  });
  DeviceMatrix out{{}, made_};
  if (is_alone()) {
    out.rows = std::move(next);
  } else {
    out.rows = sums_.add(next, *p_cols_, all_cols(), stream);
    out.nodes = sums_.nodes();
    on_each_device(ranks, [&] { next_ = pattern_of(out.rows, stream); });
  }
  mend(a, diagonal, out.rows, stream);
  return out;
}

void DeviceCoarsening::fill_part(const BlockRows& a, BlockRows& part, Stream& stream) {
  blocks::multiply_values(a, all_p(), longest_ap_, ap_, stream);
  blocks::multiply_values(transposed_p_, ap_, longest_part_, part, stream);
  stream.synchronize();
  ap_.value = {};
}

DeviceMatrix DeviceCoarsening::multiply_again(const DeviceMatrix& a, const Buffer& diagonal, Stream& stream) {
  BlockRows next;
  on_each_device(fine_->ranks(), [&] {
    next = pattern_of(part_, stream);
    fill_part(a.rows, next, stream);
  });
  DeviceMatrix out{{}, made_};
  if (is_alone()) {
    out.rows = std::move(next);
  } else {
    on_each_device(fine_->ranks(), [&] { out.rows = pattern_of(next_, stream); });
    sums_.add_again(next, *p_cols_, all_cols(), out.rows, stream);
    out.nodes = sums_.nodes();
  }
  mend(a, diagonal, out.rows, stream);
  return out;
}

void DeviceCoarsening::mend(const DeviceMatrix& a, const Buffer& diagonal, BlockRows& next, Stream& stream) const {
  Buffer scale;
  on_each_device(fine_->ranks(), [&] { scale = blocks::diagonal_scales(t_, aggregates_, a.rows, diagonal, stream); });
  if (!is_alone()) move_home(*made_, scale, t_.col_size, stream);
  blocks::mend_diagonal(next, scale, stream);
}

const NodeRows& DeviceCoarsening::copy_of_p(Stream& stream) const {
  if (!copy_of_p_)
    copy_of_p_ = NodeRows{p_.row_size,
                          p_.col_size,
                          fine_,
                          p_cols_,
                          downloaded<std::int64_t>(p_.start, stream),
                          downloaded<std::int32_t>(p_.column, stream),
                          downloaded<double>(p_.value, stream)};
  return *copy_of_p_;
}

std::int64_t DeviceCoarsening::device_bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(block_of_.bytes() + column_of_node_.bytes()) + sums_.device_bytes();
  for (const BlockRows* const rows : {&t_, &p_, &transposed_p_, &ap_, &part_, &all_t_.rows, &all_p_.rows, &next_})
    bytes += static_cast<std::int64_t>(rows->start.bytes() + rows->column.bytes() + rows->value.bytes());
  for (const Buffer* const one : {&aggregates_.of_node, &aggregates_.start, &aggregates_.member})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

}  // namespace shardmat::multigrid
