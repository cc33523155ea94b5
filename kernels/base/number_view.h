// Read-only views of numbers that are stored in one of two widths, which is known only at run time. They read as the wider
// type. Hot loops call visit(), which gives them a plain pointer.
// Ownership: views; the caller keeps the numbers. Nothing is collective.
// Threads: any thread, several at a time; a view owns nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace shardmat {

/// A random-access iterator. Reading gives a Wide by value.
template <class Wide, class Narrow>
class NumberPointer {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Wide;
  using difference_type = std::ptrdiff_t;
  using pointer = const Wide*;
  using reference = Wide;

  NumberPointer() = default;
  NumberPointer(const Wide* wide) : wide_(wide) {}
  NumberPointer(const Narrow* narrow) : narrow_(narrow) {}

  Wide operator[](difference_type i) const { return narrow_ == nullptr ? wide_[i] : static_cast<Wide>(narrow_[i]); }
  Wide operator*() const { return (*this)[0]; }
  NumberPointer& operator+=(difference_type i) {
    if (narrow_ == nullptr) wide_ += i;
    else narrow_ += i;
    return *this;
  }
  NumberPointer& operator-=(difference_type i) { return *this += -i; }
  NumberPointer& operator++() { return *this += 1; }
  NumberPointer& operator--() { return *this -= 1; }
  NumberPointer operator++(int) {
    const NumberPointer before = *this;
    ++*this;
    return before;
  }
  NumberPointer operator--(int) {
    const NumberPointer before = *this;
    --*this;
    return before;
  }
  friend NumberPointer operator+(NumberPointer p, difference_type i) { return p += i; }
  friend NumberPointer operator+(difference_type i, NumberPointer p) { return p += i; }
  friend NumberPointer operator-(NumberPointer p, difference_type i) { return p -= i; }
  friend difference_type operator-(NumberPointer p, NumberPointer q) {
    return p.narrow_ == nullptr ? p.wide_ - q.wide_ : p.narrow_ - q.narrow_;
  }
  friend bool operator==(NumberPointer p, NumberPointer q) { return p.wide_ == q.wide_ && p.narrow_ == q.narrow_; }
  friend std::strong_ordering operator<=>(NumberPointer p, NumberPointer q) { return (p - q) <=> 0; }

  const Wide* wide() const { return wide_; }        ///< null if the numbers are narrow
  const Narrow* narrow() const { return narrow_; }  ///< null if the numbers are wide

 private:
  const Wide* wide_ = nullptr;
  const Narrow* narrow_ = nullptr;
};

/// Owns nothing.
template <class Wide, class Narrow>
class NumberView {
 public:
  using Pointer = NumberPointer<Wide, Narrow>;
  using value_type = Wide;

  NumberView() = default;
  NumberView(Pointer begin, std::size_t size) : begin_(begin), size_(size) {}
  /// From a vector, an array or a span of either type.
  template <class Range, std::enable_if_t<std::is_convertible_v<const Range&, std::span<const Wide>>, int> = 0>
  NumberView(const Range& numbers)
      : begin_(std::span<const Wide>(numbers).data()), size_(std::span<const Wide>(numbers).size()) {}
  template <class Range, std::enable_if_t<std::is_convertible_v<const Range&, std::span<const Narrow>>, char> = 0>
  NumberView(const Range& numbers)
      : begin_(std::span<const Narrow>(numbers).data()), size_(std::span<const Narrow>(numbers).size()) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool is_narrow() const { return begin_.narrow() != nullptr; }
  Wide operator[](std::size_t i) const { return begin_[static_cast<std::ptrdiff_t>(i)]; }
  Wide front() const { return (*this)[0]; }
  Wide back() const { return (*this)[size_ - 1]; }
  Pointer data() const { return begin_; }
  Pointer begin() const { return begin_; }
  Pointer end() const { return begin_ + static_cast<std::ptrdiff_t>(size_); }
  NumberView first(std::size_t count) const { return {begin_, count}; }
  NumberView subspan(std::size_t first, std::size_t count) const {
    return {begin_ + static_cast<std::ptrdiff_t>(first), count};
  }

  NumberView subspan(std::size_t first) const { return subspan(first, size_ - first); }

  /// Returns use(span), with a std::span of const Wide or of const Narrow.
  template <class Use>
  decltype(auto) visit(const Use& use) const {
    if (is_narrow()) return use(std::span<const Narrow>(begin_.narrow(), size_));
    return use(std::span<const Wide>(begin_.wide(), size_));
  }

 private:
  Pointer begin_;
  std::size_t size_ = 0;
};

/// Columns of nonzeros: 32-bit where they fit.
using ColumnView = NumberView<std::int64_t, std::int32_t>;
using ColumnPointer = ColumnView::Pointer;
/// Values of nonzeros: f64, or f32 of a matrix in f32.
using ValueView = NumberView<double, float>;
using ValuePointer = ValueView::Pointer;

}  // namespace shardmat
