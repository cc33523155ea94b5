#include "partition/hdf5/binsparse.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "partition/files/json.h"

namespace shardmat::binsparse {
namespace {

struct Format {
  const char* name;
  Order order;
  bool compressed, doubly;
};

constexpr Format kFormats[] = {
    {"CSR", Order::rows, true, false},      {"CSC", Order::columns, true, false}, {"DCSR", Order::rows, true, true},
    {"DCSC", Order::columns, true, true},   {"COO", Order::rows, false, false},   {"COOR", Order::rows, false, false},
    {"COOC", Order::columns, false, false},
};

constexpr std::pair<std::string_view, Structure> kStructures[] = {
    {"symmetric", Structure::symmetric}, {"skew_symmetric", Structure::skew_symmetric}, {"hermitian", Structure::hermitian}};

/// Reads the parts of one descriptor.
class Parser {
 public:
  Parser(const Hdf5File& file, const std::string& object)
      : place_(object == "/" ? file.path() : fmt::format("{}: group {}", file.path(), object)),
        json_(parse_json(file.string_attribute(object, kAttribute), fmt::format("{}, attribute '{}'", place_, kAttribute),
                         kMostDescriptorBytes)) {}

  Descriptor operator()() {
    if (!json_.is_object() || !json_.contains("binsparse") || !json_["binsparse"].is_object())
      reject(fmt::format("the attribute '{}' is no Binsparse descriptor", kAttribute));
    json_ = nlohmann::json(json_["binsparse"]);
    Descriptor made;
    read_format(made);
    read_structure(made);
    read_value_type(made);
    if (json_.contains("fill") && json_["fill"] != false)
      reject(
          "gives a value to all entries that are not stored (\"fill\"); only matrices whose other entries are 0 are read");
    const nlohmann::json shape = json_.value("shape", nlohmann::json());
    if (!shape.is_array() || shape.size() != 2) reject("the Binsparse descriptor has no shape of two numbers");
    made.rows = count_of(shape[0], "shape");
    made.cols = count_of(shape[1], "shape");
    made.stored = count_of(json_.value("number_of_stored_values", nlohmann::json()), "number_of_stored_values");
    if (made.structure != Structure::general && made.rows != made.cols)
      reject(
          fmt::format("has the structure {} and is {} × {}; only a square matrix has it", made.word, made.rows, made.cols));
    return made;
  }

 private:
  [[noreturn]] void reject(const std::string& why) const {
    throw Error(ErrorKind::input, fmt::format("{}: {}", place_, why));
  }

  std::int64_t count_of(const nlohmann::json& value, const char* what) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > kMost)
      reject(fmt::format("the Binsparse descriptor has no {} of integers from 0", what));
    return value.get<std::int64_t>();
  }

  std::string text_of(const char* key) const {
    return json_.contains(key) && json_[key].is_string() ? json_[key].get<std::string>() : std::string();
  }

  void read_format(Descriptor& made) const {
    made.format = text_of("format");
    for (const Format& one : kFormats)
      if (made.format == one.name) {
        made.order = one.order, made.compressed = one.compressed, made.doubly = one.doubly;
        return;
      }
    reject(
        fmt::format("is a Binsparse object of format {}; CSR, CSC, DCSR, DCSC, COO, COOR and COOC are read. With SciPy: "
                    "convert by .tocsr()",
                    shortened(json_.value("format", nlohmann::json()).dump())));
  }

  void read_structure(Descriptor& made) const {
    if (!json_.contains("structure") || json_["structure"] == "general") return;
    made.word = text_of("structure");
    for (const auto& [name, structure] : kStructures)
      for (const bool lower : {true, false})
        if (made.word == fmt::format("{}_{}", name, lower ? "lower" : "upper")) {
          made.structure = structure, made.lower = lower;
          return;
        }
    reject(
        fmt::format("is stored with structure {}; symmetric, skew_symmetric and hermitian are read, with _lower or _upper. "
                    "Expand it to a general matrix first",
                    shortened(json_["structure"].dump())));
  }

  /// "float64", "iso[float64]", "complex[float64]", "iso[complex[float64]]".
  void read_value_type(Descriptor& made) const {
    const nlohmann::json types = json_.value("data_types", nlohmann::json::object());
    if (types.is_object() && types.contains("values") && types["values"].is_string())
      made.value_type = types["values"].get<std::string>();
    std::string_view type = made.value_type;
    for (bool found = true; found;) {
      found = false;
      if (type.starts_with("iso[") && type.ends_with(']')) made.iso = found = true, type = type.substr(4);
      else if (type.starts_with("complex[") && type.ends_with(']')) made.complex = found = true, type = type.substr(8);
      if (found) type.remove_suffix(1);
    }
    if (type.find('[') != std::string_view::npos)
      reject(fmt::format("has values of type {}; real and complex numbers are read, and iso of them",
                         shortened(made.value_type)));
  }

  std::string place_;
  nlohmann::json json_;
};

}  // namespace

Descriptor read_descriptor(const Hdf5File& file, const std::string& object) { return Parser(file, object)(); }

bool has_other_form(const Hdf5File& file) {
  try {
    return file.has_attribute("/", kAttribute) && !read_descriptor(file, "/").plain();
  } catch (const Error&) {
    return false;  // who reads it says what is wrong
  }
}

}  // namespace shardmat::binsparse
