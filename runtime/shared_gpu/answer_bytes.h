// Numbers and texts that an owner sends to its feeders, in one piece of memory.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardmat {

/// Values come back in the order in which they were put. REQUIRES: the same program on both sides.
class AnswerBytes {
 public:
  AnswerBytes() = default;
  explicit AnswerBytes(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put(text.size());
    text_ += text;
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void get(T& value) { read_ += text_.copy(reinterpret_cast<char*>(&value), sizeof value, read_); }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text = text_.substr(read_, size);
    read_ += size;
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    values.resize(size);
    for (T& value : values) get(value);
  }

 private:
  std::string text_;
  std::size_t read_ = 0;
};

}  // namespace shardmat
