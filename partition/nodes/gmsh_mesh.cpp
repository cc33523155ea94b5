// Meshes of Gmsh, as text of version 2 or 4.1: $Nodes and $Elements.
//
//   2      $Nodes: count; "number x y z" …          $Elements: count; "number type tags tag … nodes …"
//   4.1    $Nodes: "blocks count least most"; a block: "dimension tag parametric nodes", numbers, then places, a line each
//          $Elements: the same; a block: "dimension tag type elements", then "number nodes …"
#include <fmt/format.h>

#include <string>

#include "partition/nodes/mesh_file.h"
#include "partition/nodes/mesh_lines.h"

namespace shardmat {
namespace {

struct GmshElement {
  std::int64_t type;
  MeshElement element;
};
constexpr std::string_view kHexahedronEnds = "010304121523263745475667", kPrismEnds = "010203121425343545",
                           kPyramidEnds = "0103041214232434", kQuadrangleEnds = "01122330";
constexpr GmshElement kGmshElements[] = {
    {1, {2, 2, "", 1}},
    {2, {3, 3, "", 2}},
    {3, {4, 4, "", 2}},
    {4, {4, 4, ""}},
    {5, {8, 8, ""}},
    {6, {6, 6, ""}},
    {7, {5, 5, ""}},
    {9, {6, 3, "011220"}},
    {10, {9, 4, kQuadrangleEnds, 2}},
    {11, {10, 4, "011220032313"}},
    {12, {27, 8, kHexahedronEnds}},
    {13, {18, 6, kPrismEnds}},
    {14, {14, 5, kPyramidEnds}},
    {16, {8, 4, kQuadrangleEnds, 2}},
    {17, {20, 8, kHexahedronEnds}},
    {18, {15, 6, kPrismEnds}},
    {19, {13, 5, kPyramidEnds}},
};

const MeshElement* element_of(std::int64_t type) {
  for (const GmshElement& one : kGmshElements)
    if (one.type == type) return &one.element;
  return nullptr;
}

class GmshReader {
 public:
  GmshReader(const std::filesystem::path& path, MeshNodes& mesh) : lines_(path), mesh_(mesh) {}

  void read() {
    while (lines_.next()) {
      const std::string_view line = lines_.line();
      if (line.starts_with("$MeshFormat")) read_version();
      else if (line.starts_with("$Nodes")) blocks_ ? nodes_of_blocks() : nodes();
      else if (line.starts_with("$Elements")) blocks_ ? elements_of_blocks() : elements();
    }
  }

 private:
  void advance() {
    do
      if (!lines_.next()) lines_.fail("the file ends here; it is truncated");
    while (lines_.blank());
  }

  /// The whole numbers of the next line, at least so many.
  const std::vector<std::int64_t>& numbers(std::size_t least) {
    using namespace text_numbers;
    advance();
    numbers_.clear();
    lines_.parse([&](const char* p) {
      for (p = matrix_market::skip_blanks(p); *p != '\n'; p = matrix_market::skip_blanks(p)) {
        numbers_.emplace_back();
        p = parse_whole(p, "number", -kMostMeshNumber, kMostMeshNumber, numbers_.back());
      }
    });
    if (numbers_.size() < least)
      lines_.fail(fmt::format("the line has {} numbers; it must have {}", numbers_.size(), least));
    return numbers_;
  }

  void read_version() {
    advance();
    const double version = lines_.parse([](const char* p) {
      double number = 0;
      p = text_numbers::parse_real(p, false, number);
      std::int64_t binary = 0;
      text_numbers::parse_whole(p, "kind of file", 0, 1, binary);
      if (binary == 1)
        throw LineFault{
            p,
            "the file is binary, which is not read; write it as text: gmsh FILE -save -setnumber Mesh.Binary 0 -o NEW.msh"};
      return number;
    });
    blocks_ = version >= 4;
    if (version < 2 || (version >= 3 && version != 4.1))
      lines_.fail(fmt::format("version {} is not read; write version 4.1 or 2.2: gmsh FILE -save -format msh41 -o NEW.msh",
                              version));
  }

  const char* parse_place(const char* p, std::array<double, 3>& at) const {
    for (double& x : at) p = text_numbers::parse_real(p, false, x);
    return p;
  }

  void nodes() {
    for (std::int64_t left = numbers(1)[0]; left > 0; --left) {
      advance();
      mesh_.nodes.push_back(lines_.parse([&](const char* p) {
        MeshNodes::Node node{0, {}};
        p = text_numbers::parse_whole(p, "node", 1, kMostMeshNumber, node.number);
        text_numbers::require_line_end(parse_place(p, node.at));
        return node;
      }));
    }
  }

  void nodes_of_blocks() {
    for (std::int64_t blocks = numbers(4)[0]; blocks > 0; --blocks) {
      const std::int64_t count = numbers(4)[3];
      const std::size_t first = mesh_.nodes.size();
      for (std::int64_t i = 0; i < count; ++i) mesh_.nodes.push_back({numbers(1)[0], {}});
      for (auto node = mesh_.nodes.begin() + static_cast<std::ptrdiff_t>(first); node != mesh_.nodes.end(); ++node) {
        advance();
        lines_.parse([&](const char* p) { parse_place(p, node->at); });  // behind it, the place on a curve or a surface
      }
    }
  }

  /// The last numbers of the line are the nodes of an element.
  void add(std::int64_t type, std::size_t before) {
    const MeshElement* const element = element_of(type);
    if (element == nullptr || !is_wanted(*element, mesh_)) return;
    if (numbers_.size() != before + element->nodes)
      lines_.fail(fmt::format("the line has {} numbers; one of an element of type {} must have {}", numbers_.size(), type,
                              before + element->nodes));
    nodes_.assign(numbers_.begin() + static_cast<std::ptrdiff_t>(before), numbers_.end());
    add_element(*element, nodes_, mesh_);
  }

  void elements() {
    for (std::int64_t left = numbers(1)[0]; left > 0; --left) {
      const auto& line = numbers(3);
      if (line[2] < 0 || line[2] > std::ssize(line) - 3) lines_.fail(fmt::format("the line has no {} tags", line[2]));
      add(line[1], 3 + static_cast<std::size_t>(line[2]));
    }
  }

  void elements_of_blocks() {
    for (std::int64_t blocks = numbers(4)[0]; blocks > 0; --blocks) {
      const std::int64_t type = numbers(4)[2];
      for (std::int64_t left = numbers_[3]; left > 0; --left) {
        numbers(1);
        add(type, 1);
      }
    }
  }

  MeshLines lines_;
  MeshNodes& mesh_;
  bool blocks_ = false;  ///< version 4
  std::vector<std::int64_t> numbers_, nodes_;
};

}  // namespace

void read_gmsh_mesh(const std::filesystem::path& path, MeshNodes& mesh) { GmshReader(path, mesh).read(); }

}  // namespace shardmat
