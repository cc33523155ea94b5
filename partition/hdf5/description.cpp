#include "partition/hdf5/description.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

using Json = nlohmann::json;

constexpr std::pair<Hdf5Object::Kind, const char*> kKinds[] = {{Hdf5Object::Kind::group, "group"},
                                                               {Hdf5Object::Kind::dataset, "dataset"},
                                                               {Hdf5Object::Kind::external_link, "external link"},
                                                               {Hdf5Object::Kind::other, "other"}};
constexpr std::pair<Hdf5Object::Layout, const char*> kLayouts[] = {{Hdf5Object::Layout::contiguous, "contiguous"},
                                                                   {Hdf5Object::Layout::chunked, "chunked"},
                                                                   {Hdf5Object::Layout::compact, "compact"},
                                                                   {Hdf5Object::Layout::external, "external"},
                                                                   {Hdf5Object::Layout::virtual_dataset, "virtual"}};
constexpr std::pair<Hdf5Number::Kind, const char*> kNumbers[] = {{Hdf5Number::Kind::signed_integer, "int"},
                                                                 {Hdf5Number::Kind::unsigned_integer, "uint"},
                                                                 {Hdf5Number::Kind::floating_point, "float"},
                                                                 {Hdf5Number::Kind::other, "other"}};

template <class Enum, std::size_t N>
const char* name_of(const std::pair<Enum, const char*> (&names)[N], Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "";
}

/// Json::at() and get() throw where a member is missing or of another type; this too.
template <class Enum, std::size_t N>
Enum value_of(const std::pair<Enum, const char*> (&names)[N], const Json& json) {
  const auto text = json.get<std::string>();
  for (const auto& [value, name] : names)
    if (text == name) return value;
  throw Error(ErrorKind::input, "unknown word '" + text.substr(0, 40) + "'");
}

/// Bytes of a compact dataset, two hexadecimal digits each.
std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string from_hex(const std::string& text) {
  const auto digit = [](char c) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) throw Error(ErrorKind::input, "bytes that are not hexadecimal");
    return value;
  };
  if (text.size() % 2 != 0) throw Error(ErrorKind::input, "half a byte");
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

Json to_json(const Hdf5Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) return nullptr;
        else return value;
      },
      attribute);
}

Hdf5Attribute attribute_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return json.get<std::uint64_t>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_array()) return json.get<std::vector<std::int64_t>>();
  return std::monostate{};
}

Json to_json(const Hdf5Object& object) {
  Json json = {{"kind", name_of(kKinds, object.kind)}};
  for (const auto& [name, value] : object.attributes) json["attributes"][name] = to_json(value);
  if (object.kind == Hdf5Object::Kind::group) json["children"] = object.children;
  if (object.kind == Hdf5Object::Kind::external_link) {
    json["target_file"] = object.target_file;
    json["target_object"] = object.target_object;
  }
  if (object.kind != Hdf5Object::Kind::dataset) return json;
  json["number"] = {name_of(kNumbers, object.number.kind), object.number.bytes, object.number.big_endian,
                    object.number.name};
  json["shape"] = object.shape;
  if (!object.located) return json;
  json["layout"] = name_of(kLayouts, object.layout);
  if (!object.file.empty()) json["file"] = object.file;
  json["extents"] = Json::array();
  for (const Hdf5Extent& extent : object.extents) json["extents"].push_back({extent.file, extent.offset, extent.bytes});
  if (object.layout == Hdf5Object::Layout::compact) json["data"] = to_hex(object.data);
  for (const Hdf5Part& part : object.parts)
    json["parts"].push_back(
        {part.begin, part.rows, part.source_begin, part.target_file, part.target_object, to_json(part.source)});
  if (object.layout != Hdf5Object::Layout::chunked) return json;
  json["chunk"] = object.chunk;
  json["filters"] = Json::array();
  for (const Hdf5Filter& filter : object.filters) json["filters"].push_back({filter.id, filter.name});
  std::vector<std::int64_t> flat;
  for (const Hdf5Chunk& chunk : object.chunks) flat.insert(flat.end(), {chunk.offset, chunk.bytes, chunk.mask});
  json["chunks"] = std::move(flat);
  return json;
}

Hdf5Object object_of(const Json& json);

void read_layout(const Json& json, Hdf5Object& object) {
  object.located = true;
  object.layout = value_of(kLayouts, json.at("layout"));
  object.file = json.value("file", std::string());
  for (const Json& extent : json.at("extents"))
    object.extents.push_back(
        {extent.at(0).get<std::string>(), extent.at(1).get<std::int64_t>(), extent.at(2).get<std::int64_t>()});
  if (object.layout == Hdf5Object::Layout::compact) object.data = from_hex(json.at("data").get<std::string>());
  if (object.layout == Hdf5Object::Layout::virtual_dataset && json.contains("parts"))
    for (const Json& part : json.at("parts"))
      object.parts.push_back({part.at(0).get<std::int64_t>(), part.at(1).get<std::int64_t>(), part.at(2).get<std::int64_t>(),
                              part.at(3).get<std::string>(), part.at(4).get<std::string>(), object_of(part.at(5))});
  if (object.layout != Hdf5Object::Layout::chunked) return;
  object.chunk = json.at("chunk").get<std::vector<std::int64_t>>();
  for (const Json& filter : json.at("filters"))
    object.filters.push_back({filter.at(0).get<int>(), filter.at(1).get<std::string>()});
  const Json& flat = json.at("chunks");
  for (std::size_t i = 0; i < flat.size(); i += 3)
    object.chunks.push_back(
        {flat.at(i).get<std::int64_t>(), flat.at(i + 1).get<std::int64_t>(), flat.at(i + 2).get<std::uint32_t>()});
}

Hdf5Object object_of(const Json& json) {
  Hdf5Object object;
  object.kind = value_of(kKinds, json.at("kind"));
  if (json.contains("attributes"))
    for (const auto& [name, value] : json.at("attributes").items()) object.attributes[name] = attribute_of(value);
  if (object.kind == Hdf5Object::Kind::group) object.children = json.at("children").get<std::vector<std::string>>();
  if (object.kind == Hdf5Object::Kind::external_link) {
    object.target_file = json.at("target_file").get<std::string>();
    object.target_object = json.at("target_object").get<std::string>();
  }
  if (object.kind != Hdf5Object::Kind::dataset) return object;
  const Json& number = json.at("number");
  object.number = {value_of(kNumbers, number.at(0)), number.at(1).get<int>(), number.at(2).get<bool>(),
                   number.at(3).get<std::string>()};
  object.shape = json.at("shape").get<std::vector<std::int64_t>>();
  if (json.contains("layout")) read_layout(json, object);
  return object;
}

/// Descriptions have eight levels; whoever made up a deeper one is not followed.
Json parse(const std::string& text) {
  constexpr int kMostLevels = 8;
  return Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostLevels) throw Error(ErrorKind::input, "too many levels");
    return true;
  });
}

}  // namespace

std::string Hdf5Description::to_text() const {
  Json json;
  for (const auto& [path, object] : objects) json[path] = to_json(object);
  return Json{{"file_bytes", file_bytes}, {"objects", std::move(json)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Hdf5Description Hdf5Description::from_text(const std::string& text, const std::string& place) {
  Hdf5Description description;
  try {
    const Json json = parse(text);
    description.file_bytes = json.at("file_bytes").get<std::int64_t>();
    for (const auto& [path, object] : json.at("objects").items()) description.objects[path] = object_of(object);
  } catch (const std::exception& e) {
    throw Error(ErrorKind::input, fmt::format("{}: the description of what it holds is damaged ({}); copy or make the file "
                                              "again",
                                              place, std::string(e.what()).substr(0, 120)));
  }
  return description;
}

}  // namespace shardmat
