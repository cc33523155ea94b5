// Result files of CalculiX, as text: the nodes ("2C") and the elements ("3C") of the mesh; the results are left
// out. Coordinates have 6 digits.
//
//   " -1", number, x, y, z            a node: 10 characters for the number (5 in the short form), 12 for a coordinate
//   " -1", number, type, group, material; " -2", nodes …                       an element
#include <fmt/format.h>

#include <charconv>
#include <string>

#include "partition/nodes/mesh_file.h"
#include "partition/nodes/mesh_lines.h"

namespace shardmat {
namespace {

struct FrdElement {
  int type;
  MeshElement element;
};
constexpr FrdElement kFrdElements[] = {
    {1, {8, 8, ""}},
    {2, {6, 6, ""}},
    {3, {4, 4, ""}},
    {7, {3, 3, "", 2}},
    {9, {4, 4, "", 2}},
    {4, {20, 8, "011223300415263745566774"}},
    {5, {15, 6, "011220031425344553"}},
    {6, {10, 4, "011220031323"}},
    {8, {6, 3, "011220"}},
    {10, {8, 4, "01122330", 2}},
};

class FrdReader {
 public:
  FrdReader(const std::filesystem::path& path, MeshNodes& mesh) : lines_(path), mesh_(mesh) {}

  void read() {
    enum class Block { other, nodes, elements } block = Block::other;
    while (lines_.next()) {
      const std::string_view line = lines_.line();
      if (line.starts_with("    2C") || line.starts_with("    3C")) {
        block = line[4] == '2' ? Block::nodes : Block::elements;
        begin_block(line);
      } else if (line.starts_with(" -3")) {
        if (block != Block::other) require_whole();
        block = Block::other;
      } else if (block == Block::nodes) {
        add_node(line);
      } else if (block == Block::elements) {
        add_element_line(line);
      }
    }
  }

 private:
  void begin_block(std::string_view line) {
    constexpr std::size_t kForm = 73;
    const char form = line.size() > kForm ? line[kForm] : ' ';
    if (form != '0' && form != '1')
      lines_.fail("it is written in binary form, which is not read; write it as text, or take the input file (.inp)");
    width_ = form == '0' ? 5 : 10;
  }

  void require(std::string_view line, const char* key) const {
    if (!line.starts_with(key)) lines_.fail(fmt::format("a line that begins with \"{}\" is missing here", key));
  }

  std::int64_t whole(std::string_view line, std::size_t begin, std::size_t width) const {
    std::int64_t number = 0;
    const auto first = std::min(line.size(), line.find_first_not_of(' ', begin));
    const char* const end = line.data() + std::min(line.size() - 1, begin + width);
    const auto [stop, error] = std::from_chars(line.data() + first, std::max(end, line.data() + first), number);
    if (error != std::errc{} || number < 0 || number > kMostMeshNumber)
      lines_.fail(fmt::format("there is no whole number at character {}", begin + 1));
    return number;
  }

  void add_node(std::string_view line) {
    require(line, " -1");
    constexpr std::size_t kKey = 3, kReal = 12;
    MeshNodes::Node node{whole(line, kKey, width_), {}};
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t begin = kKey + width_ + kReal * k;
      if (line.size() < begin + kReal) lines_.fail("a node has three coordinates of 12 characters");
      const std::string text = std::string(line.substr(begin, kReal)) + "\n";  // numbers may touch each other
      lines_.parse([&](const char*) {
        try {
          text_numbers::require_line_end(text_numbers::parse_real(text.data(), false, node.at[k]));
        } catch (const LineFault& fault) {
          throw LineFault{lines_.line().data(), fault.what};
        }
      });
    }
    mesh_.nodes.push_back(node);
  }

  void add_element_line(std::string_view line) {
    constexpr std::size_t kKey = 3, kType = 5;
    if (line.starts_with(" -1")) {
      require_whole();
      const std::int64_t type = whole(line, kKey + width_, kType);
      element_ = nullptr;
      for (const FrdElement& one : kFrdElements)
        if (one.type == type && is_wanted(one.element, mesh_)) element_ = &one.element;
      return;
    }
    require(line, " -2");
    if (element_ == nullptr) return;
    for (std::size_t begin = kKey; nodes_.size() < element_->nodes && begin + width_ < line.size() + 1; begin += width_)
      if (line.find_first_not_of(" \r\n", begin) != std::string_view::npos) nodes_.push_back(whole(line, begin, width_));
    if (nodes_.size() < element_->nodes) return;
    add_element(*element_, nodes_, mesh_);
    nodes_.clear();
  }

  void require_whole() const {
    if (!nodes_.empty())
      lines_.fail(fmt::format("the element before has {} nodes; it must have {}", nodes_.size(), element_->nodes));
  }

  MeshLines lines_;
  MeshNodes& mesh_;
  std::size_t width_ = 10;  ///< of whole numbers
  const MeshElement* element_ = nullptr;
  std::vector<std::int64_t> nodes_;  ///< of an element so far
};

}  // namespace

void read_frd_mesh(const std::filesystem::path& path, MeshNodes& mesh) { FrdReader(path, mesh).read(); }

}  // namespace shardmat
