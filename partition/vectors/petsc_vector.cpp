// Vec and dense Mat of PETSc's binary files as vectors; readers/petsc.h describes the files.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/base/error.h"
#include "partition/files/big_endian.h"
#include "partition/files/output_file.h"
#include "partition/readers/petsc.h"
#include "partition/vectors/vector_file.h"
#include "partition/vectors/vector_formats.h"

namespace shardmat {
namespace {

constexpr std::int64_t kBlock = 1 << 15;  ///< numbers converted at a time

class PetscSink final : public VectorSink {
 public:
  PetscSink(const AtomicFile& file, std::int64_t size, std::int64_t columns) : file_(file), columns_(columns) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 1;
    const int bytes = size <= kMost && columns <= kMost ? 4 : 8;
    const std::int64_t vector[] = {petsc::kVec, size}, dense[] = {petsc::kMat, size, columns, -1};
    const std::int64_t* const header = columns == 1 ? vector : dense;
    const std::int64_t count = columns == 1 ? 2 : 4;
    std::string text(static_cast<std::size_t>(count * bytes), '\0');
    to_big_endian(header, bytes, count, text.data());
    file_.append(text);
  }

  void append(const double* values, std::int64_t rows) override {
    std::string bytes;
    for (std::int64_t done = 0, count = rows * columns_; done < count; done += kBlock) {
      const std::int64_t block = std::min(kBlock, count - done);
      bytes.assign(reinterpret_cast<const char*>(values + done), static_cast<std::size_t>(block) * sizeof(double));
      reverse_bytes(reinterpret_cast<std::uint64_t*>(bytes.data()), block);
      file_.append(bytes);
    }
  }

  void close() override { file_.close(); }

 private:
  OutputFile file_;
  std::int64_t columns_;
};

}  // namespace

bool accepts_petsc_vector(const std::filesystem::path& path) { return petsc::is_petsc_file(path); }

VectorContents open_petsc_vector(const std::filesystem::path& path, const VectorChoice& choice, std::int64_t columns) {
  const auto file = std::make_shared<const InputFile>(path);
  const petsc::Object found = petsc::find(*file, petsc::scan(*file), choice.object,
                                          columns == VectorFile::kAsStored ? petsc::Wanted::numbers
                                          : columns == 1                   ? petsc::Wanted::vector
                                                                           : petsc::Wanted::dense);
  if (columns == VectorFile::kAsStored) columns = std::max<std::int64_t>(1, found.cols);
  if (found.cols != columns)
    throw Error(ErrorKind::input,
                fmt::format("{}: it is a {}; it must have {} columns", path.string(), petsc::describe(found), columns),
                columns_setting(found.rows, found.cols));
  return {found.rows, columns, [file, columns, values = found.values](std::int64_t begin, std::int64_t end) {
            HostVector<double> entries(static_cast<std::size_t>((end - begin) * columns));
            for (std::int64_t done = 0; done < std::ssize(entries); done += kBlock) {
              const std::int64_t block = std::min(kBlock, std::ssize(entries) - done);
              file->read(entries.data() + done, values + 8 * (begin * columns + done), 8 * block);
              reverse_bytes(reinterpret_cast<std::uint64_t*>(entries.data() + done), block);
            }
            return entries;
          }};
}

std::unique_ptr<VectorSink> make_petsc_sink(const AtomicFile& file, std::int64_t size, std::int64_t columns) {
  return std::make_unique<PetscSink>(file, size, columns);
}

}  // namespace shardmat
