// Vectors in HDF5, .npy and Matrix Market files, and by vector_formats.h in those of other programs. A text file is parsed
// when it is opened; the others are read range by range.
#include "partition/vectors/vector_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "partition/files/atomic_files.h"
#include "partition/files/compression/compression.h"
#include "partition/files/input_file.h"
#include "partition/files/object_name.h"
#include "partition/files/output_file.h"
#include "partition/hdf5/file.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/matrix_market_lines.h"
#include "partition/readers/npy_header.h"
#include "partition/readers/replaceable.h"
#include "partition/readers/text_source.h"
#include "partition/vectors/vector_formats.h"
#include "partition/vectors/vector_sinks.h"

namespace shardmat {
namespace {

constexpr std::int64_t kConvertedAtOnce = 1 << 16;  ///< entries converted at a time

[[noreturn]] void fail(const std::string& source, const std::string& what, const std::string& setting = {}) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", source, what), setting);
}

/// The columns of a shape. Throws Error(input) unless it is that of n rows with the wanted number of them.
std::int64_t columns_in(const std::string& source, const std::vector<std::int64_t>& shape, std::int64_t columns) {
  if (columns <= 1 && shape.size() == 1) return 1;
  if (shape.size() == 2 && shape[1] > 0 && (columns == VectorFile::kAsStored || shape[1] == columns)) return shape[1];
  const bool fits = shape.size() == 1 || shape.size() == 2;
  const std::string setting = fits ? columns_setting(shape[0], shape.size() == 1 ? 1 : shape[1]) : "";
  const std::string wanted = columns <= 1
                                 ? "a vector must have one dimension, or be n × 1"
                                 : fmt::format("it must have a row for every entry of a vector, and {} columns", columns);
  fail(source, fmt::format("its shape is ({}); {}", fmt::join(shape, ", "), wanted), setting);
}

enum class Format { hdf5, npy, matrix_market, other };

/// A vector's name taken apart: FILE, and the dataset of FILE.h5:/dataset.
struct Location {
  Format format;
  std::filesystem::path file;
  std::string dataset;
  std::string text;  ///< for messages
  const VectorFormat* other = nullptr;
  VectorChoice choice{};                      ///< which vector in a file of another format
  std::vector<std::string> other_datasets{};  ///< that are taken if the first is not there
};

std::optional<Format> format_of(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  if (suffix == ".h5" || suffix == ".hdf5") return Format::hdf5;
  if (suffix == ".npy") return Format::npy;
  if (suffix == ".mtx") return Format::matrix_market;
  return std::nullopt;
}

std::string absolute(const std::string& dataset) { return dataset.starts_with('/') ? dataset : "/" + dataset; }

/// Where the dataset begins in FILE.h5:DATASET; npos without one.
std::size_t dataset_colon(const std::string& text) {
  for (const std::string_view mark : {".h5:", ".hdf5:"})
    if (const std::size_t at = text.rfind(mark); at != std::string::npos) return at + mark.size() - 1;
  return std::string::npos;
}

/// "/a/b" and nothing that HDF5 takes for another name or for none: empty steps, "." and "..".
bool is_dataset_name(const std::string& dataset) {
  constexpr std::size_t kMost = 1024;
  const std::string steps = dataset + "/";
  return dataset.size() <= kMost && steps.find("//") == std::string::npos && steps.find("/./") == std::string::npos &&
         steps.find("/../") == std::string::npos;
}

/// The name of a file in the format of another program; nothing if it is in none. Existing input is known by its content.
std::optional<Location> locate_other(const std::string& text, const std::string& role, bool input) {
  const ObjectName name = input ? split_object_name(text) : ObjectName{text, ""};
  const VectorFormat* const format = input ? vector_format_of(name.file) : vector_format_for(name.file);
  if (format == nullptr) return std::nullopt;
  return Location{Format::other, name.file, "", text, format, {name.object, role}};
}

std::vector<std::string> known_suffixes() {
  std::vector<std::string> suffixes{".h5", ".hdf5", ".npy", ".mtx"};
  for (const VectorFormat& format : vector_formats())
    if (!format.suffix.empty()) suffixes.emplace_back(format.suffix);
  return suffixes;
}

/// The name of the array in a file of MATLAB that has this role, or of the only array; the role if there is none. Throws
/// Error(input) for several.
std::string array_of_role(const std::filesystem::path& file, const std::string& role) {
  const auto objects = matlab_hdf5::objects_of(file);
  for (const std::string& name : names_of_role(role))
    if (std::any_of(objects.begin(), objects.end(), [&](const auto& object) { return object.name == absolute(name); }))
      return name;
  std::vector<std::string> arrays;
  for (const auto& object : objects)
    if (!object.sparse) arrays.push_back(object.name);
  if (arrays.size() > 1)
    fail(file.string(), fmt::format("it has several arrays, and none is named {}; name one, as {}:{}; they are {}", role,
                                    file.string(), arrays.front(), join_choices(arrays)));
  return arrays.empty() ? role : arrays.front();
}

/// Throws Error(kind) naming the known suffixes. `kind` is input for a file to read, usage for one to write.
Location locate(const std::filesystem::path& path, const std::string& default_dataset, ErrorKind kind) {
  const std::string text = path.string();
  if (text.empty()) throw Error(kind, "the name of a vector's file is empty; is a variable of your script unset?");
  if (kind == ErrorKind::input)
    if (const ObjectName name = split_object_name(text);
        content_of(name.file) == FileContent::hdf5 && !has_hdf5_suffix(name.file)) {  // as MATLAB's files
      const std::string dataset = absolute(!name.object.empty() ? name.object : array_of_role(name.file, default_dataset));
      return {Format::hdf5, name.file, dataset, fmt::format("{}:{}", name.file, dataset)};
    }
  if (auto other = locate_other(text, default_dataset, kind == ErrorKind::input)) return *other;
  if (const std::size_t colon = dataset_colon(text); colon != std::string::npos) {
    std::string dataset = absolute(text.substr(colon + 1));
    if (dataset.find_first_not_of('/') == std::string::npos)
      throw Error(kind, fmt::format("{}: the name of the dataset is missing; write FILE.h5:/NAME", text));
    if (!is_dataset_name(dataset))
      throw Error(kind, fmt::format("{}: {} is no name of a dataset; write FILE.h5:/NAME or FILE.h5:/GROUP/NAME",
                                    shortened(text), shortened(dataset)));
    return {Format::hdf5, text.substr(0, colon), std::move(dataset), text};
  }
  std::optional<Format> format = format_of(path);
  if (!format && kind == ErrorKind::input && uncompressed_name(path).extension() == ".mtx") format = Format::matrix_market;
  const std::string near = nearest(path.extension().string(), known_suffixes());
  if (!format)
    throw Error(kind, fmt::format("{}: a vector's file name must end in {}{}", text, join_choices(known_suffixes()),
                                  near.empty() || path.extension().empty() ? "" : fmt::format(" (did you mean {}?)", near)));
  const bool is_hdf5 = *format == Format::hdf5;
  const std::string dataset = is_hdf5 ? absolute(default_dataset) : "";
  Location location{*format, path, dataset, is_hdf5 ? fmt::format("{}:{}", text, dataset) : text};
  if (is_hdf5)
    for (const std::string& name : names_of_role(default_dataset))
      if (absolute(name) != dataset) location.other_datasets.push_back(absolute(name));
  return location;
}

std::string dataset_remedy(const Hdf5File& file, const std::string& wanted) {
  std::vector<std::string> names = file.children("/");
  for (std::string& name : names) name.insert(0, 1, '/');
  if (names.empty()) return "the file is empty";
  const std::string near = nearest(wanted, names);
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  names.resize(std::min<std::size_t>(names.size(), 10));
  return fmt::format("name one as FILE.h5:/NAME; the file has {}", join_choices(names));
}

/// Column j of a row-major matrix.
void put_column(std::span<const double> column, std::int64_t j, std::int64_t columns, HostVector<double>& matrix) {
  for (std::size_t i = 0; i < column.size(); ++i)
    matrix[i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)] = column[i];
}

/// All that may be meant.
std::vector<std::string> datasets_of(const Location& location) {
  std::vector<std::string> names{location.dataset};
  names.insert(names.end(), location.other_datasets.begin(), location.other_datasets.end());
  return names;
}

/// One open dataset.
struct Hdf5Vector {
  Hdf5File file;
  Hdf5Dataset dataset;
  std::int64_t columns;
  std::optional<HostVector<double>> columns_read{};  ///< of an array of MATLAB's, row by row

  Hdf5Vector(Location location, std::int64_t columns_)
      : file(Hdf5File::open(location.file, datasets_of(location))), columns(columns_) {
    if (!file.has(location.dataset))
      for (const std::string& other : location.other_datasets)
        if (file.has(other)) {
          location.text = fmt::format("{}:{}", location.file.string(), other);
          location.dataset = other;
        }
    if (!file.has(location.dataset))
      fail(location.file.string(),
           fmt::format("there is no dataset {}; {}", location.dataset, dataset_remedy(file, location.dataset)));
    const std::string of_matlab = matlab_hdf5::array_dataset(file, location.dataset);
    dataset = file.dataset(of_matlab.empty() ? location.dataset : of_matlab);
    if (dataset.type() == Hdf5Type::other)
      fail(location.text,
           "its elements are no real numbers; write it as f32, f64 or integers (complex numbers in two parts)");
    if (dataset.shape().size() == 2 && !of_matlab.empty()) read_columns(location);
    else columns = columns_in(location.text, dataset.shape(), columns);
  }

  std::int64_t size() const { return columns_read ? std::ssize(*columns_read) / columns : dataset.size(); }

  HostVector<double> read(std::int64_t begin, std::int64_t end) const {
    if (columns_read) return {columns_read->begin() + begin * columns, columns_read->begin() + end * columns};
    HostVector<double> values(static_cast<std::size_t>((end - begin) * columns));
    dataset.read(begin, end - begin, values.data());
    return values;
  }

 private:
  /// MATLAB stores column after column, and HDF5 sees the columns as rows.
  void read_columns(const Location& location) {
    const std::int64_t stored = dataset.shape()[0], rows = dataset.shape()[1];
    if (rows != 1 || columns > 1) columns = columns_in(location.text, {rows, stored}, columns);
    else columns = 1;
    const std::int64_t count = rows == 1 && columns == 1 ? stored : rows * columns;  // also a row is a vector
    ReadLimits{}.require_memory(16 * count, location.file);
    HostVector<double> by_columns(static_cast<std::size_t>(count));
    dataset.read(0, stored, by_columns.data());
    if (columns == 1) {
      columns_read = std::move(by_columns);
      return;
    }
    columns_read.emplace(by_columns.size());
    for (std::int64_t j = 0; j < columns; ++j)
      put_column(std::span(by_columns).subspan(static_cast<std::size_t>(j * rows), static_cast<std::size_t>(rows)), j,
                 columns, *columns_read);
  }
};

/// One .npy file.
struct NpyVector {
  InputFile file;
  NpyHeader header;
  std::int64_t columns;

  NpyVector(const Location& location, std::int64_t columns_, ComplexPart part) : file(location.file), columns(columns_) {
    std::int64_t position = 0;
    header = read_npy_header(location.text, [&](void* to, std::size_t size) {
      if (static_cast<std::int64_t>(size) > file.size() - position)
        fail(location.text, "its .npy header is truncated; copy or write it again");
      file.read(to, position, static_cast<std::int64_t>(size));
      position += static_cast<std::int64_t>(size);
    });
    choose_part(location.text, header, part);
    npy_to_f64(location.text, header, nullptr, 0, nullptr);  // throws if it cannot
    columns = columns_in(location.text, header.shape, columns);
    const std::int64_t held = file.size() - position;
    if (held != header.count * header.item_bytes)
      fail(location.text,
           fmt::format("its header promises {} bytes of data but the file has {}; it is truncated or damaged, "
                       "write it again",
                       header.count * header.item_bytes, held));
  }

  std::int64_t rows() const { return header.shape.front(); }

  HostVector<double> read(std::int64_t begin, std::int64_t end) const {
    if (!header.fortran_order || columns == 1) return entries(begin * columns, end * columns);
    HostVector<double> values(static_cast<std::size_t>((end - begin) * columns));
    for (std::int64_t j = 0; j < columns; ++j) put_column(entries(j * rows() + begin, j * rows() + end), j, columns, values);
    return values;
  }

 private:
  /// As they lie in the file.
  HostVector<double> entries(std::int64_t begin, std::int64_t end) const {
    HostVector<double> values(static_cast<std::size_t>(end - begin));
    HostVector<char> bytes(static_cast<std::size_t>(std::min(kConvertedAtOnce, end - begin) * header.item_bytes));
    for (std::int64_t done = 0; done < end - begin; done += kConvertedAtOnce) {
      const std::int64_t count = std::min(kConvertedAtOnce, end - begin - done);
      file.read(bytes.data(), header.data_offset + (begin + done) * header.item_bytes, count * header.item_bytes);
      npy_to_f64(file.path().string(), header, bytes.data(), static_cast<std::size_t>(count), values.data() + done);
    }
    return values;
  }
};

/// An n × n matrix from its lower triangle's columns; `skew`: zeros on the diagonal. What is above is `sign` times what is
/// below.
HostVector<double> expanded(const std::string& place, std::span<const double> half, std::int64_t n, bool skew, double sign) {
  HostVector<double> all(static_cast<std::size_t>(n * n));
  const auto at = [&](std::int64_t i, std::int64_t j) -> double& { return all[static_cast<std::size_t>(i * n + j)]; };
  std::size_t next = 0;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = j; i < n; ++i) {
      const double value = skew && i == j ? 0 : half[next++];
      if (i == j && sign < 0 && value != 0)
        fail(place,
             fmt::format("the hermitian array has the imaginary part {} in row {} of its diagonal, not 0", value, i + 1));
      at(j, i) = sign * value, at(i, j) = value;
    }
  return all;
}

/// The array row by row; the file has it column by column. `columns` becomes that of the file if it is not said.
HostVector<double> parse_array(const Location& location, std::int64_t& columns, ComplexPart part) {
  namespace mm = matrix_market;
  const auto source = TextSource::open(location.file, {});
  const mm::Header header = mm::read_header(*source, part);
  if (header.layout != mm::Layout::array)
    fail(location.text + ":1", "it is a sparse matrix; a vector must be in the format array, real general");
  if (columns == VectorFile::kAsStored) columns = std::max<std::int64_t>(1, header.cols);
  if (header.cols != columns)
    fail(fmt::format("{}:{}", location.text, header.size_line),
         fmt::format("the array is {} × {}; {} must have {}", header.rows, header.cols, columns == 1 ? "a vector" : "it",
                     columns == 1 ? "one column" : fmt::format("{} columns", columns)),
         columns_setting(header.rows, header.cols));
  // Of a symmetric array the file has the lower triangle, of a skew-symmetric one what is below the diagonal.
  const bool half = header.symmetry != mm::Symmetry::general, skew = header.symmetry == mm::Symmetry::skew_symmetric;
  const std::int64_t promised = half ? (header.entries - columns) / 2 + (skew ? 0 : columns) : header.entries;
  const std::int64_t most = mm::most_entries(*source, header);
  ReadLimits{}.require_memory((columns == 1 ? 8 : 16) * most, location.file);
  HostVector<double> values;
  values.reserve(static_cast<std::size_t>(most));
  ReadLimits one_piece;  // at a time: the place of an entry depends on those before it
  one_piece.piece_bytes = std::numeric_limits<std::int64_t>::max();
  one_piece.batch_bytes = 1 << 20;
  for_each_piece(*source, header.body_offset, one_piece, "read vector", {}, [&](std::string_view piece) {
    const char* const end = piece.data() + piece.size();
    for (const char* line = piece.data(); line < end; line += std::string_view(line, end).find('\n') + 1) {
      const char* p = mm::skip_blanks(line);
      if (*p == '\n' || *p == '%') continue;
      if (static_cast<std::int64_t>(values.size()) == promised)
        throw LineFault{p, fmt::format("there are more than the promised {} entries", promised)};
      double value = 0;
      mm::require_line_end(header.field == mm::Field::complex ? mm::parse_part(p, end, part, true, value)
                                                              : mm::parse_value(p, end, header.field, true, value));
      values.push_back(value);
    }
  });
  if (static_cast<std::int64_t>(values.size()) != promised)
    fail(fmt::format("{}:{}", location.text, header.size_line),
         fmt::format("the size line promises {} entries, the file has {}; it is truncated, or the size line is wrong",
                     promised, values.size()));
  source->file().require_unchanged();
  if (half) return expanded(location.text, values, columns, skew, mm::mirror_sign(header));
  if (columns == 1) return values;
  HostVector<double> by_rows(values.size());
  for (std::int64_t j = 0; j < columns; ++j)
    put_column(std::span(values).subspan(static_cast<std::size_t>(j * header.rows), static_cast<std::size_t>(header.rows)),
               j, columns, by_rows);
  return by_rows;
}

}  // namespace

std::optional<Hdf5Input> VectorFile::hdf5_input(const std::filesystem::path& path, const std::string& default_dataset) {
  try {
    const Location location = locate(path, default_dataset, ErrorKind::input);
    if (location.format == Format::hdf5) return Hdf5Input{location.file, datasets_of(location)};
  } catch (const Error&) {
    // Opening it says what is wrong.
  }
  return std::nullopt;
}

VectorFile::VectorFile(const std::filesystem::path& path, const std::string& default_dataset, std::int64_t columns,
                       ComplexPart part) {
  const Location location = locate(path, default_dataset, ErrorKind::input);
  if (part != ComplexPart::none && location.format != Format::npy && location.format != Format::matrix_market)
    fail(location.text, "complex numbers are read from .npy and .mtx files; write it with numpy.save");
  std::function<HostVector<double>(std::int64_t, std::int64_t)> read;
  columns_ = columns;
  switch (location.format) {
    case Format::hdf5: {
      const auto vector = std::make_shared<const Hdf5Vector>(location, columns);
      size_ = vector->size(), columns_ = vector->columns;
      read = [vector](std::int64_t begin, std::int64_t end) { return vector->read(begin, end); };
      break;
    }
    case Format::npy: {
      const auto vector = std::make_shared<const NpyVector>(location, columns, part);
      size_ = vector->rows(), columns_ = vector->columns;
      read = [vector](std::int64_t begin, std::int64_t end) { return vector->read(begin, end); };
      break;
    }
    case Format::matrix_market: {
      const auto values = std::make_shared<const HostVector<double>>(parse_array(location, columns_, part));
      size_ = static_cast<std::int64_t>(values->size()) / columns_;
      read = [values, columns = columns_](std::int64_t begin, std::int64_t end) {
        return HostVector<double>(values->begin() + begin * columns, values->begin() + end * columns);
      };
      break;
    }
    case Format::other: {
      VectorContents contents = location.other->open(location.file, location.choice, columns);
      size_ = contents.size, columns_ = contents.columns;
      read = std::move(contents.read);
      break;
    }
  }
  read_ = [size = size_, read = std::move(read), name = location.text](std::int64_t begin, std::int64_t end) {
    if (begin < 0 || begin > end || end > size)
      throw Error(ErrorKind::internal, fmt::format("rows [{}, {}) asked of {} with {}", begin, end, name, size));
    return read(begin, end);
  };
}

namespace {

std::unique_ptr<VectorSink> make_sink(const Location& location, const AtomicFiles& files, std::int64_t size, bool f32,
                                      std::int64_t columns) {
  const AtomicFile& file = files[0];
  switch (location.format) {
    case Format::hdf5:
      return make_hdf5_sink(file, location.dataset, size, f32, columns);
    case Format::npy:
      return make_npy_sink(file, size, f32, columns);
    case Format::other:
      require_columns(*location.other, location.file, columns);
      if (location.other->make_part_sink != nullptr) return make_sink_of_parts(*location.other, files, size, columns);
      return location.other->make_sink(file, size, columns);
    case Format::matrix_market:
      break;
  }
  return make_array_sink(file, size, columns);
}

}  // namespace

struct VectorWriter::Impl {
  Impl(const Location& location, std::int64_t rows, bool f32, std::int64_t columns, std::int64_t count)
      : files(location.file, count, rows),
        name(location.text),
        size(rows),
        sink(make_sink(location, files, rows, f32, columns)) {}

  AtomicFiles files;  // outlive the sink, which must close the temporaries before they are removed
  std::string name;
  std::int64_t size;
  std::int64_t written = 0;
  std::unique_ptr<VectorSink> sink;
};

VectorWriter::VectorWriter(const std::filesystem::path& path, const std::string& default_dataset, std::int64_t size,
                           bool f32, std::int64_t columns, std::int64_t files)
    : impl_(std::make_unique<Impl>(locate(path, default_dataset, ErrorKind::usage), size, f32, columns, files)) {}

VectorWriter::~VectorWriter() = default;

void VectorWriter::append(const double* values, std::int64_t count) {
  if (count > impl_->size - impl_->written)
    throw Error(ErrorKind::internal, fmt::format("more than {} rows written to {}", impl_->size, impl_->name));
  if (count > 0) impl_->sink->append(values, count);
  impl_->written += count;
}

void VectorWriter::finish() {
  if (impl_->written != impl_->size)
    throw Error(ErrorKind::internal, fmt::format("{} of {} rows written to {}", impl_->written, impl_->size, impl_->name));
  impl_->sink->close();
  impl_->files.commit();
}

std::string vector_suffixes() { return fmt::format("{}", fmt::join(known_suffixes(), ", ")); }

void check_vector_suffix(const std::filesystem::path& path) { locate(path, "x", ErrorKind::usage); }

std::filesystem::path vector_file_name(const std::filesystem::path& path) { return split_object_name(path.string()).file; }

void check_vector_writable(const std::filesystem::path& path, std::int64_t columns, std::int64_t files) {
  const Location location = locate(path, "x", ErrorKind::usage);
  if (location.other != nullptr) require_columns(*location.other, location.file, columns);
  check_file_count(location.file, files);
  check_writable(location.file);
}

}  // namespace shardmat
