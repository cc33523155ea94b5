#include "partition/complex_equivalent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "partition/files/atomic_file.h"
#include "partition/files/input_file.h"
#include "partition/files/output_file.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/npy_header.h"
#include "partition/readers/reader_list.h"
#include "partition/readers/text_source.h"
#include "partition/vectors/vector_file.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlock = 1 << 16;  ///< rows of a vector at a time

/// Rows of [a -b; b a]. The parts have the same pattern, for they were read from the same entries.
class RealEquivalent final : public RowSource {
 public:
  RealEquivalent(HostCsr real, HostCsr imaginary, std::string name)
      : real_(std::move(real)), imaginary_(std::move(imaginary)), name_(std::move(name)) {}

  std::int64_t rows() const override { return 2 * real_.rows; }
  std::int64_t cols() const override { return 2 * real_.cols; }
  std::string name() const override { return name_; }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    HostVector<std::int64_t> lengths;
    lengths.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t row = begin; row < end; ++row) lengths.push_back(2 * (start(row / 2 + 1) - start(row / 2)));
    return lengths;
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr made;
    made.rows = end - begin, made.cols = cols();
    made.row_ptr.assign(1, 0);
    for (std::int64_t row = begin; row < end; ++row) {
      const bool upper = row % 2 == 0;
      for (std::int64_t k = start(row / 2); k < start(row / 2 + 1); ++k) {
        const auto at = static_cast<std::size_t>(k);
        const double a = real_.values[at], b = imaginary_.values[at];
        made.col_idx.push_back(2 * real_.col_idx[at]);
        made.col_idx.push_back(2 * real_.col_idx[at] + 1);
        made.values.push_back(upper ? a : b);
        made.values.push_back(upper ? (b == 0 ? 0 : -b) : a);
      }
      made.row_ptr.push_back(static_cast<std::int64_t>(made.col_idx.size()));
    }
    return made;
  }

 private:
  std::int64_t start(std::int64_t row) const { return real_.row_ptr[static_cast<std::size_t>(row)]; }

  HostCsr real_, imaginary_;
  std::string name_;
};

/// Columns of an n × columns array in a file; 1 where only opening it tells.
std::int64_t columns_of(const std::filesystem::path& path) {
  if (path.extension() != ".npy") {
    const auto source = TextSource::open(path, {});
    try {
      return std::max<std::int64_t>(1, matrix_market::read_header(*source, ComplexPart::real).cols);
    } catch (const Error&) {
      return std::max<std::int64_t>(1, matrix_market::read_header(*source).cols);
    }
  }
  const InputFile file(path);
  std::int64_t position = 0;
  const NpyHeader header = read_npy_header(path.string(), [&](void* to, std::size_t size) {
    const auto bytes = static_cast<std::int64_t>(size);
    if (bytes > file.size() - position)
      throw Error(ErrorKind::input, fmt::format("{}: its .npy header is truncated; write it again", path.string()));
    file.read(to, position, bytes);
    position += bytes;
  });
  return header.shape.size() == 2 ? std::max<std::int64_t>(1, header.shape[1]) : 1;
}

}  // namespace

std::unique_ptr<RowSource> real_equivalent(const std::string& argument, const ReadOptions& options) {
  ReadOptions part = options;
  part.choices.part = ComplexPart::real;
  HostCsr real = read_matrix(argument, part);
  part.choices.part = ComplexPart::imaginary;
  HostCsr imaginary = read_matrix(argument, part);
  if (real.row_ptr != imaginary.row_ptr || real.col_idx != imaginary.col_idx)
    throw Error(ErrorKind::input, fmt::format("{}: it changed while it was read; read it again", argument));
  return std::make_unique<RealEquivalent>(std::move(real), std::move(imaginary), argument);
}

bool is_dense_file(const std::filesystem::path& path) {
  if (path.extension() == ".npy") return true;
  if (!accepts_matrix_market(path)) return false;
  const auto source = TextSource::open(path, {});
  for (const ComplexPart part : {ComplexPart::real, ComplexPart::none}) {
    try {
      return matrix_market::read_header(*source, part).layout == matrix_market::Layout::array;
    } catch (const Error&) {
      // Of the other kind, or damaged: reading says so.
    }
  }
  return false;
}

std::int64_t write_real_vector(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::int64_t columns = columns_of(from);
  const VectorFile real(from, "x", columns, ComplexPart::real), imaginary(from, "x", columns, ComplexPart::imaginary);
  VectorWriter writer(to, "x", 2 * real.size(), false, columns);
  for (std::int64_t begin = 0; begin < real.size(); begin += kBlock) {
    const std::int64_t end = std::min(real.size(), begin + kBlock);
    const HostVector<double> a = real.read(begin, end), b = imaginary.read(begin, end);
    HostVector<double> both;
    both.reserve(2 * a.size());
    const auto width = static_cast<std::ptrdiff_t>(columns);
    for (std::ptrdiff_t row = 0; row < end - begin; ++row) {
      both.insert(both.end(), a.begin() + row * width, a.begin() + (row + 1) * width);
      both.insert(both.end(), b.begin() + row * width, b.begin() + (row + 1) * width);
    }
    writer.append(both.data(), 2 * (end - begin));
  }
  writer.finish();
  return real.size();
}

std::int64_t write_complex_vector(const std::filesystem::path& from, const std::filesystem::path& to) {
  const bool text = to.extension() == ".mtx";
  if (!text && to.extension() != ".npy")
    throw Error(ErrorKind::usage,
                fmt::format("{}: complex numbers are written to .npy and .mtx files; choose one of them", to.string()));
  const std::int64_t columns = is_dense_file(from) ? columns_of(from) : 1;
  const VectorFile parts(from, "x", columns);
  if (parts.size() % 2 != 0)
    throw Error(ErrorKind::input, fmt::format("{}: it has {} rows; real and imaginary parts in turn are an even number",
                                              from.string(), parts.size()));
  const std::int64_t n = parts.size() / 2;
  const HostVector<double> values = parts.read(0, parts.size());
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  };
  AtomicFile file(to);
  OutputFile output(file);
  if (text) {
    output.append(fmt::format("%%MatrixMarket matrix array complex general\n{} {}\n", n, columns));
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < n; ++i) output.append(fmt::format("{} {}\n", at(2 * i, j), at(2 * i + 1, j)));
  } else {
    output.append(
        make_npy_header("<c16", columns == 1 ? std::vector<std::int64_t>{n} : std::vector<std::int64_t>{n, columns}));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const double number[] = {at(2 * i, j), at(2 * i + 1, j)};
        output.append(std::string_view(reinterpret_cast<const char*>(number), sizeof number));
      }
  }
  output.close();
  file.commit();
  return n;
}

}  // namespace shardmat
