// Vectors in .mat files of version 7.3: one array, named as the file. MATLAB stores column after column, so that the rows
// are put together in memory.
#include <algorithm>
#include <cctype>

#include "kernels/base/memory_limits.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/vector_formats.h"

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

class MatlabSink final : public VectorSink {
 public:
  MatlabSink(const AtomicFile& file, std::int64_t size, std::int64_t columns)
      : name_("/" + variable_name(file.path())),
        size_(size),
        columns_(columns),
        file_(file, 8 * size * columns, matlab_hdf5::user_block()) {
    require_host_memory(8 * size * columns, "the columns of a .mat file");
    by_columns_.resize(static_cast<std::size_t>(size * columns));
  }

  void append(const double* values, std::int64_t rows) override {
    for (std::int64_t i = 0; i < rows; ++i, ++written_)
      for (std::int64_t j = 0; j < columns_; ++j)
        by_columns_[static_cast<std::size_t>(j * size_ + written_)] = values[i * columns_ + j];
  }

  void close() override {
    {
      auto dataset = file_.create_dataset<double>(name_, {columns_, size_});
      dataset.write(0, columns_, by_columns_.data());
    }
    file_.write_attribute(name_, "MATLAB_class", std::string("double"));
    file_.close();
  }

 private:
  std::string name_;
  std::int64_t size_, columns_, written_ = 0;
  Hdf5Writer file_;
  HostVector<double> by_columns_;
};

}  // namespace

bool accepts_matlab_vector(const std::filesystem::path&) { return false; }  // existing files are read as HDF5

std::unique_ptr<VectorSink> make_matlab_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns) {
  return std::make_unique<MatlabSink>(file, size, columns);
}

}  // namespace shardmat
