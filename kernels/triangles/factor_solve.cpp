#include "kernels/triangles/factor_solve.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/triangles/pass.h"

namespace shardmat::triangles {
namespace {

Buffer upload(const void* data, std::size_t bytes, Stream& stream) {
  Buffer buffer(stream.device(), bytes);
  copy_to_device(buffer.data(), data, bytes, stream);
  return buffer;
}
template <class T>
Buffer upload(const HostVector<T>& values, Stream& stream) {
  return upload(values.data(), values.size() * sizeof(T), stream);
}

DeviceSlices put(const TriangleRows& rows, const Levels& levels, const HostVector<std::int32_t>& number, int size,
                 ValueType type, Stream& stream) {
  Slices slices = make_slices(rows, levels, number, size, type, team_of(rows, levels));
  require_memory(stream.device(), slices.bytes(), "a triangle of incomplete factors");
  return {slices.team,
          upload(slices.start, stream),
          upload(slices.row, stream),
          upload(slices.column, stream),
          upload(slices.value, stream),
          std::move(slices.level)};
}

template <class V>
Pass<V> pass_over(const DeviceSlices& t, std::int64_t count, int columns) {
  Pass<V> pass{};
  pass.start = t.start.as<std::int64_t>(), pass.row = t.row.as<std::int32_t>(), pass.column = t.column.as<std::int32_t>();
  pass.value = t.value.as<V>(), pass.team = t.team;
  pass.first = 0, pass.end = t.level.back();
  pass.count = count, pass.columns = columns;
  return pass;
}

}  // namespace

FactorSolve::FactorSolve(const HostFactors& factors, std::span<const std::int32_t> place, const Ways& ways, int columns,
                         Stream& stream)
    : type_(factors.type), size_(factors.size), columns_(columns), ways_(ways), count_(factors.lower.count) {
  const bool exact = ways.sweeps == 0;
  HostVector<std::int32_t> number(at(count_));  // of the rows of the matrix
  {
    HostVector<std::int32_t> as_they_are(at(count_));
    std::iota(as_they_are.begin(), as_they_are.end(), 0);
    const Levels lower = exact ? find_levels(factors.lower, as_they_are) : one_level(factors.lower);
    for (std::int64_t i = 0; i < count_; ++i) number[at(lower.row[at(i)])] = static_cast<std::int32_t>(i);
    lower_ = put(factors.lower, lower, number, size_, type_, stream);
    const Levels upper = exact ? find_levels(factors.upper, lower.row) : one_level(factors.upper);
    upper_ = put(factors.upper, upper, number, size_, type_, stream);
  }
  const std::int64_t entries = std::int64_t{size_} * size_, unknowns = count_ * size_;
  const std::size_t width = size_of(type_);
  HostVector<std::int32_t> placed(at(unknowns));
  HostVector<char> inverse(at(count_ * entries) * width);
  parallel_ranges(count_, grain_of(count_, count_ * entries), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t to = number[at(i)];
      std::copy_n(place.begin() + i * size_, size_, placed.begin() + to * size_);
      std::copy_n(static_cast<const char*>(factors.inverse) + at(i * entries) * width, at(entries) * width,
                  inverse.data() + at(to * entries) * width);
    }
  });
  waits_ = exact && std::max(lower_levels(), upper_levels()) > ways_.most_launches;
  const std::size_t vector = at(unknowns * columns_) * width;
  require_memory(stream.device(), static_cast<std::int64_t>(inverse.size() + 4 * placed.size() + 3 * vector),
                 "incomplete factors");
  place_ = upload(placed, stream), inverse_ = upload(inverse, stream);
  y_ = Buffer(stream.device(), vector), x_ = Buffer(stream.device(), vector);
  if (!exact) other_ = Buffer(stream.device(), vector);
  tickets_ = Buffer(stream.device(), 2 * sizeof(unsigned));
  for (const Buffer* const one : {&y_, &x_}) fill_bytes(one->data(), 0xff, vector, stream);
  fill_bytes(tickets_.data(), 0, tickets_.bytes(), stream);
}

template <class V>
void FactorSolve::solve(const void* r, void* z, bool f64, Stream& stream) const {
  Pass<V> lower = pass_over<V>(lower_, count_, columns_), upper = pass_over<V>(upper_, count_, columns_);
  lower.r = r, upper.z = z;
  lower.place = upper.place = place_.as<std::int32_t>(), lower.f64 = upper.f64 = f64;
  lower.from = lower.to = y_.as<V>(), upper.from = upper.to = x_.as<V>();
  upper.b = y_.as<V>(), upper.inverse = inverse_.as<V>();
  if (waits_) {
    lower.next = x_.as<V>(), upper.next = y_.as<V>();
    lower.ticket = upper.next_ticket = tickets_.as<unsigned>();
    upper.ticket = lower.next_ticket = tickets_.as<unsigned>() + 1;
    run_pass(lower, size_, true, stream);
    return run_pass(upper, size_, true, stream);
  }
  const auto by_levels = [&](Pass<V> pass, const std::vector<std::int64_t>& level) {
    for (std::size_t l = 0; l + 1 < level.size(); ++l) {
      pass.first = level[l], pass.end = level[l + 1];
      run_pass(pass, size_, false, stream);
    }
  };
  by_levels(lower, lower_.level), by_levels(upper, upper_.level);
}

template <class V>
void FactorSolve::sweep(const void* r, void* z, bool f64, Stream& stream) const {
  V* const b = y_.as<V>();
  V* x = x_.as<V>();
  V* next = other_.as<V>();
  const auto sweeps = [&](Pass<V> pass, const V* inverse, const void* first_r, void* last_z) {
    pass.place = place_.as<std::int32_t>(), pass.f64 = f64;
    pass.couples = false, pass.r = first_r, pass.b = x, pass.inverse = inverse, pass.to = b;
    run_pass(pass, size_, false, stream);
    pass.couples = true, pass.r = nullptr, pass.b = b, pass.inverse = nullptr, pass.from = b;
    for (int i = 1; i <= ways_.sweeps; ++i) {
      pass.to = next;
      if (i == ways_.sweeps && last_z != nullptr) pass.z = last_z, pass.to = nullptr;
      run_pass(pass, size_, false, stream);
      pass.from = next;
      std::swap(x, next);
    }
  };
  sweeps(pass_over<V>(lower_, count_, columns_), nullptr, r, nullptr);
  sweeps(pass_over<V>(upper_, count_, columns_), inverse_.as<V>(), nullptr, z);
}

void FactorSolve::apply(const void* r, void* z, ValueType type, Stream& stream) const {
  if (count_ == 0) return;
  dispatch(type_, [&]<class Tag>(Tag) {
    using V = typename Tag::type;
    const bool f64 = type == ValueType::f64;
    ways_.sweeps > 0 ? sweep<V>(r, z, f64, stream) : solve<V>(r, z, f64, stream);
  });
}

std::int64_t FactorSolve::bytes() const {
  std::int64_t bytes = lower_.bytes() + upper_.bytes();
  for (const Buffer* const one : {&inverse_, &place_, &y_, &x_, &other_, &tickets_})
    bytes += static_cast<std::int64_t>(one->bytes());
  return bytes;
}

std::int64_t FactorSolve::launches() const {
  return ways_.sweeps > 0 ? 2 * (ways_.sweeps + 1) : waits_ ? 2 : lower_levels() + upper_levels();
}

}  // namespace shardmat::triangles
