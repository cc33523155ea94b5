#include "partition/readers/harwell_boeing_format.h"

#include <charconv>
#include <string>

namespace shardmat::harwell_boeing {
namespace {

constexpr int kMostNumber = 1000;  ///< of every number and of the fields of a line

/// One thing that a format tells: a field, blanks, or a scale for the fields behind it.
struct Item {
  char kind = 0;   ///< 'I', 'E' (any real), 'X' or 'P'
  int number = 0;  ///< width, count or scale
  int decimals = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) {
    for (const char c : text)
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') text_ += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  }

  /// False for what is no such format. Then items() and repeated() are undefined.
  bool parse() { return take('(') && group(items_, 1) && at_ == text_.size(); }
  /// Of the first line.
  const std::vector<Item>& items() const { return items_; }
  /// The first item of the lines behind it.
  std::size_t repeated() const { return repeated_; }

 private:
  bool take(char c) { return at_ < text_.size() && text_[at_] == c ? (++at_, true) : false; }

  bool number(int& value) {
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0 || value > kMostNumber) return false;
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  bool is_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }

  /// What stands behind an opening bracket, and the closing one.
  bool group(std::vector<Item>& items, int depth) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest) return false;
    while (!take(')')) {
      if (!item(items, depth) || items.size() > kMostNumber) return false;
      take(',');
    }
    return true;
  }

  bool item(std::vector<Item>& items, int depth) {
    const bool negative = take('-');
    if (!negative) take('+');
    int count = 1;
    if (is_digit() ? !number(count) : negative) return false;
    if (take('P')) return items.push_back({'P', negative ? -count : count}), true;
    if (negative || count < 1) return false;
    if (take('X')) return items.push_back({'X', count}), true;
    std::vector<Item> one;
    if (take('(')) {
      if (depth == 1) repeated_ = items.size();
      if (!group(one, depth + 1)) return false;
    } else if (!field(one)) {
      return false;
    }
    if (static_cast<std::size_t>(count) * one.size() > kMostNumber) return false;
    for (int i = 0; i < count; ++i) items.insert(items.end(), one.begin(), one.end());
    return true;
  }

  bool field(std::vector<Item>& items) {
    const bool whole = take('I');
    if (!whole && !take('F') && !take('D') && !take('G')) {
      if (!take('E')) return false;
      if (!take('S')) take('N');
    }
    Item item{whole ? 'I' : 'E'};
    int unused = 0;
    if (!number(item.number) || item.number < 1) return false;
    if (take('.') && !number(whole ? unused : item.decimals)) return false;
    if (!whole && take('E') && !number(unused)) return false;
    items.push_back(item);
    return true;
  }

  std::string text_;
  std::size_t at_ = 0, repeated_ = 0;
  std::vector<Item> items_;
};

/// The places of the fields of one line. False if fields differ.
bool place(const std::vector<Item>& items, std::size_t from, int& scale, bool& known, Fields& fields, std::vector<int>& to) {
  int column = 0;
  for (std::size_t i = from; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.kind == 'X') column += item.number;
    if (item.kind == 'P') scale = item.number;
    if (item.kind == 'X' || item.kind == 'P') continue;
    const bool whole = item.kind == 'I';
    if (known &&
        (whole != fields.whole || item.number != fields.width || item.decimals != fields.decimals || scale != fields.scale))
      return false;
    known = true;
    fields.whole = whole, fields.width = item.number, fields.decimals = item.decimals, fields.scale = scale;
    fields.gaps = fields.gaps || column != static_cast<int>(to.size()) * item.number;
    to.push_back(column);
    column += item.number;
  }
  return !to.empty();
}

}  // namespace

std::int64_t Fields::lines(std::int64_t fields) const {
  const auto in_first = static_cast<std::int64_t>(first.size()), in_next = static_cast<std::int64_t>(next.size());
  if (fields <= in_first) return fields > 0 ? 1 : 0;
  return 1 + (fields - in_first) / in_next + ((fields - in_first) % in_next != 0 ? 1 : 0);
}

std::optional<Fields> parse_format(std::string_view text) {
  Parser parser(text);
  Fields fields;
  int scale = 0;
  bool known = false;
  if (!parser.parse() || !place(parser.items(), 0, scale, known, fields, fields.first) ||
      !place(parser.items(), parser.repeated(), scale, known, fields, fields.next))
    return std::nullopt;
  return fields;
}

}  // namespace shardmat::harwell_boeing
