// Input files of Abaqus and CalculiX: *NODE and *ELEMENT; *INCLUDE and INPUT= lead to other files.
//
//   *NODE       number, x, y, z
//   *ELEMENT    number, nodes …; an element may go over several lines
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "partition/nodes/mesh_file.h"
#include "partition/nodes/mesh_lines.h"

namespace shardmat {
namespace {

constexpr int kMostIncludes = 16;  ///< inside each other

constexpr MeshElement kTriangle{6, 3, "011220"}, kQuadrangle{8, 4, "01122330", 2}, kTetrahedron{10, 4, "011220031323"},
    kWedge{15, 6, "011220344553031425"}, kHexahedron{20, 8, "011223304556677404152637"}, kLinearTriangle{3, 3, "", 2},
    kLinearQuadrangle{4, 4, "", 2}, kLinearTetrahedron{4, 4, ""}, kLinearWedge{6, 6, ""}, kLinearHexahedron{8, 8, ""};

struct NamedElement {
  std::string_view type;  ///< no digit follows it in names such as C3D20R
  MeshElement element;
};
constexpr NamedElement kNamed[] = {
    {"C3D10", kTetrahedron},
    {"DC3D10", kTetrahedron},
    {"C3D15", kWedge},
    {"DC3D15", kWedge},
    {"C3D20", kHexahedron},
    {"DC3D20", kHexahedron},
    {"CPS6", kTriangle},
    {"CPE6", kTriangle},
    {"CAX6", kTriangle},
    {"DC2D6", kTriangle},
    {"M3D6", kTriangle},
    {"STRI65", kTriangle},
    {"S6", kTriangle},
    {"CPS8", kQuadrangle},
    {"CPE8", kQuadrangle},
    {"CAX8", kQuadrangle},
    {"DC2D8", kQuadrangle},
    {"M3D8", kQuadrangle},
    {"S8", kQuadrangle},
    {"C3D4", kLinearTetrahedron},
    {"DC3D4", kLinearTetrahedron},
    {"C3D6", kLinearWedge},
    {"DC3D6", kLinearWedge},
    {"C3D8", kLinearHexahedron},
    {"DC3D8", kLinearHexahedron},
    {"CPS3", kLinearTriangle},
    {"CPE3", kLinearTriangle},
    {"CAX3", kLinearTriangle},
    {"DC2D3", kLinearTriangle},
    {"M3D3", kLinearTriangle},
    {"S3", kLinearTriangle},
    {"CPS4", kLinearQuadrangle},
    {"CPE4", kLinearQuadrangle},
    {"CAX4", kLinearQuadrangle},
    {"DC2D4", kLinearQuadrangle},
    {"M3D4", kLinearQuadrangle},
    {"S4", kLinearQuadrangle},
};

/// A line that begins with one *, and those that continue it.
struct Keyword {
  std::string name;                                             ///< in upper case, without the *
  std::vector<std::pair<std::string, std::string>> parameters;  ///< names in upper case

  const std::string* value(std::string_view parameter) const {
    for (const auto& [key, text] : parameters)
      if (key == parameter) return &text;
    return nullptr;
  }
};

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n\""), end = text.find_last_not_of(" \t\r\n\"");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin + 1));
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

class InputDeck {
 public:
  InputDeck(const std::filesystem::path& path, MeshNodes& mesh, int depth)
      : path_(path), lines_(path), mesh_(mesh), depth_(depth) {}

  /// `keyword`: the block that data lines at the start belong to; may be null.
  void read(const Keyword* keyword) {
    begin_block(keyword);
    while (lines_.next()) {
      const char* const first = matrix_market::skip_blanks(lines_.line().data());
      if (*first == '\n' || std::string_view(first).starts_with("**")) continue;
      if (*first == '*') begin_keyword();
      else if (block_ == Block::nodes) add_node();
      else if (block_ == Block::elements) add_element_nodes();
    }
    end_block();
  }

 private:
  enum class Block { other, nodes, elements };

  void begin_keyword() {
    end_block();
    std::string text = trimmed(lines_.line());
    while (text.ends_with(',') && lines_.next()) text += trimmed(lines_.line());
    Keyword keyword;
    for (std::size_t begin = 1; begin <= text.size();) {
      const std::size_t end = std::min(text.size(), text.find(',', begin));
      const std::string word = text.substr(begin, end - begin);
      const std::size_t equals = word.find('=');
      const std::string key = upper(trimmed(word.substr(0, equals)));
      if (begin == 1) keyword.name = key;
      else keyword.parameters.emplace_back(key, equals == std::string::npos ? "" : trimmed(word.substr(equals + 1)));
      begin = end + 1;
    }
    follow(keyword);
  }

  void follow(const Keyword& keyword) {
    const std::string* const file = keyword.value("INPUT");
    if (keyword.name == "INCLUDE") {
      if (file == nullptr) lines_.fail("*INCLUDE names no file; write INPUT=FILE");
      return read_file(*file, nullptr);
    }
    if (keyword.name == "PART" && ++parts_ > 1)
      lines_.fail("there are several parts, which number their nodes alike; write a flat input file, which has no parts");
    if (keyword.name == "SYSTEM")
      lines_.fail("*SYSTEM moves nodes to another place, which is not read; write all nodes in global coordinates");
    begin_block(&keyword);
    if (block_ != Block::other && file != nullptr) read_file(*file, &keyword);
  }

  void read_file(const std::string& name, const Keyword* keyword) {
    if (depth_ == kMostIncludes) lines_.fail(fmt::format("files include each other more than {} times deep", kMostIncludes));
    InputDeck(path_.parent_path() / name, mesh_, depth_ + 1).read(keyword);
  }

  void begin_block(const Keyword* keyword) {
    block_ = Block::other;
    if (keyword == nullptr) return;
    if (keyword->name == "NODE") {
      const std::string* const system = keyword->value("SYSTEM");
      if (system != nullptr && upper(*system) != "R")
        lines_.fail(fmt::format("nodes in the system {} are not read; write them in rectangular coordinates", *system));
      block_ = Block::nodes;
    } else if (const std::string* const type = keyword->value("TYPE"); keyword->name == "ELEMENT" && type != nullptr) {
      const std::string name = upper(*type);
      for (const NamedElement& one : kNamed)
        if (name.starts_with(one.type) && (name.size() == one.type.size() || !std::isdigit(name[one.type.size()])))
          if (is_wanted(one.element, mesh_)) block_ = Block::elements, element_ = &one.element;
    }
  }

  void end_block() {
    if (block_ == Block::elements && !words_.empty())
      lines_.fail(fmt::format("the last element has {} nodes; it must have {}", words_.size() - 1, element_->nodes));
  }

  void add_node() {
    using namespace text_numbers;
    mesh_.nodes.push_back(lines_.parse([&](const char* p) {
      MeshNodes::Node node{0, {}};
      p = parse_whole(p, "node", 1, kMostMeshNumber, node.number);
      for (double& x : node.at) {
        if (*skip_separator(p) == '\n') break;
        p = parse_real(p, false, x);
      }
      return node;
    }));
  }

  void add_element_nodes() {
    using namespace text_numbers;
    lines_.parse([&](const char* p) {
      for (p = matrix_market::skip_blanks(p); *p != '\n'; p = skip_separator(p)) {
        if (words_.size() > element_->nodes) throw LineFault{p, "there are more nodes than the element has"};
        std::int64_t number = 0;
        p = parse_whole(p, "node", 1, kMostMeshNumber, number);
        words_.push_back(number);
      }
    });
    if (words_.size() <= element_->nodes) return;
    words_.erase(words_.begin());
    add_element(*element_, words_, mesh_);
    words_.clear();
  }

  std::filesystem::path path_;
  MeshLines lines_;
  MeshNodes& mesh_;
  int depth_, parts_ = 0;
  Block block_ = Block::other;
  const MeshElement* element_ = nullptr;
  std::vector<std::int64_t> words_;  ///< of an element so far: its number, and nodes
};

}  // namespace

void read_abaqus_mesh(const std::filesystem::path& path, MeshNodes& mesh) { InputDeck(path, mesh, 0).read(nullptr); }

}  // namespace shardmat
