#include "tools/cli/vtk_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "tools/cli/value_checks.h"
#include "tools/cli/write_text.h"

namespace shardmat::tools {
namespace {

/// Appends bytes in base64.
void append_base64(std::string_view bytes, std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
}

/// An array: its length in bytes, then its values, in the byte order of this machine, which the file's head names.
template <class T>
void append_array(std::string_view attributes, std::span<const T> values, std::string& text) {
  const std::uint64_t length = values.size_bytes();
  std::string bytes(sizeof length + length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  if (length > 0) std::memcpy(bytes.data() + sizeof length, values.data(), length);
  text += fmt::format("<DataArray {} format=\"binary\">", attributes);
  append_base64(bytes, text);
  text += "</DataArray>\n";
}

/// Values of components [first, first + count) of column `column`, `width` numbers a point.
void append_field(const MeshView& mesh, const HostVector<double>& vectors, std::int64_t columns, std::int64_t column,
                  std::int64_t first, std::int64_t count, const std::string& name, std::string& text) {
  const std::int64_t points = std::ssize(mesh.points) / 3, width = count == 2 ? 3 : count;
  HostVector<double> values(static_cast<std::size_t>(points * width));
  std::fill(values.begin(), values.end(), 0.0);
  for (std::int64_t i = 0; i < points; ++i)
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t row = mesh.rows[static_cast<std::size_t>(i * mesh.components + first + k)];
      if (row >= 0)
        values[static_cast<std::size_t>(i * width + k)] = vectors[static_cast<std::size_t>(row * columns + column)];
    }
  append_array<double>(fmt::format("type=\"Float64\" Name=\"{}\" NumberOfComponents=\"{}\"", name, width), values, text);
}

}  // namespace

ValueCheck vtk_name() {
  return value_check(
      [](const std::string& text) { return is_output_name(text) && std::filesystem::path(text).extension() == ".vtu"; },
      "the name of a file of VTK, ending in .vtu");
}

void write_vtk(const std::string& path, const MeshView& mesh, const HostVector<double>& vectors, std::int64_t columns,
               const std::string& name) {
  constexpr std::int64_t kSolid = 3;
  std::string text = fmt::format(
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"{}\" "
      "header_type=\"UInt64\">\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n<PointData>\n",
      std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian", mesh.points.size() / 3,
      mesh.cells.types.size());
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::string of_column = columns == 1 ? name : fmt::format("{}_{}", name, j);
    const bool rotates = mesh.components == 2 * kSolid;
    append_field(mesh, vectors, columns, j, 0, rotates ? kSolid : mesh.components, of_column, text);
    if (rotates) append_field(mesh, vectors, columns, j, kSolid, kSolid, of_column + "_rotation", text);
  }
  text += "</PointData>\n<Points>\n";
  append_array<double>("type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\"", mesh.points, text);
  text += "</Points>\n<Cells>\n";
  append_array<std::int64_t>("type=\"Int64\" Name=\"connectivity\"", mesh.cells.nodes, text);
  append_array<std::int64_t>("type=\"Int64\" Name=\"offsets\"", mesh.cells.ends, text);
  append_array<std::uint8_t>("type=\"UInt8\" Name=\"types\"", mesh.cells.types, text);
  text += "</Cells>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";
  write_text(path, text);
}

}  // namespace shardmat::tools
