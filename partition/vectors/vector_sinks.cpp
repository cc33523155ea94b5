#include "partition/vectors/vector_sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "partition/files/output_file.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/npy_header.h"

namespace shardmat {
namespace {

constexpr std::int64_t kConverted = 1 << 16;  ///< entries at a time

class Hdf5Sink final : public VectorSink {
 public:
  Hdf5Sink(const AtomicFile& file, const std::string& name, std::int64_t size, bool f32, std::int64_t columns)
      : file_(file) {
    for (std::size_t end = name.find('/', 1); end != std::string::npos; end = name.find('/', end + 1))
      if (!file_.has(name.substr(0, end))) file_.create_group(name.substr(0, end));
    std::vector<std::int64_t> shape{size};
    if (columns > 1) shape.push_back(columns);
    dataset_ = f32 ? file_.create_dataset<float>(name, shape) : file_.create_dataset<double>(name, shape);
  }

  void append(const double* values, std::int64_t count) override {
    dataset_.write(written_, count, values);
    written_ += count;
  }

  void close() override {
    dataset_ = {};
    file_.close();
  }

 private:
  Hdf5Writer file_;
  Hdf5OutputDataset dataset_;
  std::int64_t written_ = 0;
};

/// Bytes to a file.
class ByteSink : public VectorSink {
 public:
  explicit ByteSink(const AtomicFile& file) : file_(file) {}
  void close() override { file_.close(); }

 protected:
  void add(std::string_view bytes) { file_.append(bytes); }

 private:
  OutputFile file_;
};

class NpySink final : public ByteSink {
 public:
  NpySink(const AtomicFile& file, std::int64_t size, bool f32, std::int64_t columns)
      : ByteSink(file), f32_(f32), columns_(columns) {
    std::vector<std::int64_t> shape{size};
    if (columns > 1) shape.push_back(columns);
    add(make_npy_header(f32 ? "<f4" : "<f8", shape));
  }
  void append(const double* values, std::int64_t rows) override {
    const std::int64_t count = rows * columns_;
    std::vector<float> narrowed;
    for (std::int64_t done = 0; done < count; done += kConverted) {
      const double* const begin = values + done;
      const double* const end = begin + std::min(kConverted, count - done);
      narrowed.clear();
      if (f32_) std::transform(begin, end, std::back_inserter(narrowed), [](double v) { return static_cast<float>(v); });
      add(f32_ ? std::string_view(reinterpret_cast<const char*>(narrowed.data()), narrowed.size() * sizeof(float))
               : std::string_view(reinterpret_cast<const char*>(begin),
                                  static_cast<std::size_t>(end - begin) * sizeof(double)));
    }
  }

 private:
  bool f32_;
  std::int64_t columns_;
};

class ArraySink final : public ByteSink {
 public:
  ArraySink(const AtomicFile& file, std::int64_t size, std::int64_t columns)
      : ByteSink(file), columns_(static_cast<std::size_t>(columns)) {
    add(fmt::format("%%MatrixMarket matrix array real general\n{} {}\n", size, columns));
  }
  void append(const double* values, std::int64_t count) override {
    if (columns_ == 1)
      for (std::int64_t i = 0; i < count; ++i) add_line(values[i]);
    else rows_.insert(rows_.end(), values, values + count * static_cast<std::int64_t>(columns_));
  }
  void close() override {
    for (std::size_t j = 0; j < columns_; ++j)
      for (std::size_t k = j; k < rows_.size(); k += columns_) add_line(rows_[k]);
    ByteSink::close();
  }

 private:
  void add_line(double value) { add(fmt::format("{:.17g}\n", value)); }

  std::size_t columns_;
  std::vector<double> rows_;  ///< of more than one column, which the format wants one after another
};

/// The files of several ranks, one after another.
class PartsSink final : public VectorSink {
 public:
  PartsSink(const VectorFormat& format, const AtomicFiles& files, std::int64_t size, std::int64_t columns)
      : format_(format), files_(files), size_(size), columns_(columns) {
    begin_file();
  }
  void append(const double* values, std::int64_t count) override {
    while (count > 0) {
      if (row_ == end_of_file()) {
        sink_->close();
        ++file_;
        begin_file();
      }
      const std::int64_t rows = std::min(count, end_of_file() - row_);
      sink_->append(values, rows);
      values += rows * columns_, count -= rows, row_ += rows;
    }
  }
  void close() override { sink_->close(); }

 private:
  std::int64_t end_of_file() const { return begin_of_part(size_, file_ + 1, files_.size()); }
  void begin_file() { sink_ = format_.make_part_sink(files_[file_], size_, row_, end_of_file(), columns_); }

  const VectorFormat& format_;
  const AtomicFiles& files_;
  std::int64_t size_, columns_, file_ = 0, row_ = 0;
  std::unique_ptr<VectorSink> sink_;
};

}  // namespace

std::unique_ptr<VectorSink> make_hdf5_sink(const AtomicFile& file, const std::string& dataset, std::int64_t size, bool f32,
                                           std::int64_t columns) {
  return std::make_unique<Hdf5Sink>(file, dataset, size, f32, columns);
}

std::unique_ptr<VectorSink> make_npy_sink(const AtomicFile& file, std::int64_t size, bool f32, std::int64_t columns) {
  return std::make_unique<NpySink>(file, size, f32, columns);
}

std::unique_ptr<VectorSink> make_array_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns) {
  return std::make_unique<ArraySink>(file, size, columns);
}

std::unique_ptr<VectorSink> make_sink_of_parts(const VectorFormat& format, const AtomicFiles& files, std::int64_t size,
                                               std::int64_t columns) {
  return std::make_unique<PartsSink>(format, files, size, columns);
}

}  // namespace shardmat
