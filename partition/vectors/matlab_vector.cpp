// Vectors in .mat files: one array, named as the file, of version 5 if it has less than 2 GB, else of 7.3, which is HDF5.
// MATLAB stores column after column, so that the rows are put together in memory.
#include <algorithm>
#include <cctype>
#include <string>

#include "kernels/base/memory_limits.h"
#include "partition/files/output_file.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/vectors/vector_formats.h"
#include "partition/writers/matlab5_elements.h"

namespace shardmat {
namespace {

/// The name of the file as that of a variable of MATLAB; "x" if it is none.
std::string variable_name(const std::filesystem::path& path) {
  constexpr std::size_t kLongest = 63;
  const std::string name = path.stem().string();
  const auto letter = [](unsigned char c) { return c < 128 && std::isalpha(c) != 0; };
  const auto allowed = [&](unsigned char c) { return letter(c) || c == '_' || (c < 128 && std::isdigit(c) != 0); };
  const bool fits = !name.empty() && name.size() <= kLongest && letter(static_cast<unsigned char>(name.front())) &&
                    std::all_of(name.begin(), name.end(), allowed);
  return fits ? name : "x";
}

/// Puts rows together column after column.
class ByColumns : public VectorSink {
 public:
  ByColumns(const AtomicFile& file, std::int64_t size, std::int64_t columns)
      : name_(variable_name(file.path())), size_(size), columns_(columns) {
    require_host_memory(8 * size * columns, "the columns of a .mat file");
    values_.resize(static_cast<std::size_t>(size * columns));
  }

  void append(const double* values, std::int64_t rows) override {
    for (std::int64_t i = 0; i < rows; ++i, ++written_)
      for (std::int64_t j = 0; j < columns_; ++j)
        values_[static_cast<std::size_t>(j * size_ + written_)] = values[i * columns_ + j];
  }

 protected:
  std::string name_;
  std::int64_t size_, columns_, written_ = 0;
  HostVector<double> values_;
};

/// Bytes of the variable in a file of version 5.
std::int64_t variable_bytes(const std::string& name, std::int64_t entries) {
  return matlab5::head_bytes(name) + matlab5::element_bytes(8 * entries);
}

class Matlab5Sink final : public ByColumns {
 public:
  Matlab5Sink(const AtomicFile& file, std::int64_t size, std::int64_t columns)
      : ByColumns(file, size, columns), file_(file) {}

  void close() override {
    using namespace matlab5;
    begin_file(file_, variable_bytes(name_, size_ * columns_), kDoubleClass, 0, size_, columns_, name_);
    append_element(file_, kDouble, {reinterpret_cast<const char*>(values_.data()), 8 * values_.size()});
    file_.close();
  }

 private:
  OutputFile file_;
};

class MatlabHdf5Sink final : public ByColumns {
 public:
  MatlabHdf5Sink(const AtomicFile& file, std::int64_t size, std::int64_t columns)
      : ByColumns(file, size, columns), file_(file, 8 * size * columns, matlab_hdf5::user_block()) {}

  void close() override {
    const std::string dataset = "/" + name_;
    file_.create_dataset<double>(dataset, {columns_, size_}).write(0, columns_, values_.data());
    file_.write_attribute(dataset, "MATLAB_class", std::string("double"));
    file_.close();
  }

 private:
  Hdf5Writer file_;
};

}  // namespace

bool accepts_matlab_vector(const std::filesystem::path&) { return false; }  // files are read as MATLAB 5, or as HDF5

std::unique_ptr<VectorSink> make_matlab_hdf5_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns) {
  return std::make_unique<MatlabHdf5Sink>(file, size, columns);
}

std::unique_ptr<VectorSink> make_matlab_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns) {
  const bool fits =
      size * columns <= matlab5::kMost / 8 && variable_bytes(variable_name(file.path()), size * columns) <= matlab5::kMost;
  if (!fits) return make_matlab_hdf5_sink(file, size, columns);
  return std::make_unique<Matlab5Sink>(file, size, columns);
}

}  // namespace shardmat
