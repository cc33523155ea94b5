#include "partition/shard/summed_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/files/checksum.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostColumns = 16;

std::string checksums_of(const std::string& table) { return table + "_checksums"; }

template <class T>
std::uint64_t sum_of(const HostVector<T>& numbers) {
  return xxh64(numbers.data(), sizeof(T) * numbers.size());
}

}  // namespace

template <class T>
SummedTable<T>::SummedTable(const Hdf5File& file, const std::string& name) {
  if (!file.has(name)) return;
  data_ = file.dataset(name);
  const auto& shape = data_.shape();
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || shape[1] > kMostColumns)
    throw Error(ErrorKind::input, fmt::format("{} has shape [{}], which is none of a table of a few columns", data_.place(),
                                              fmt::join(shape, ", ")));
  constexpr bool kReal = std::is_same_v<T, double>;
  if (data_.type() != (kReal ? Hdf5Type::f64 : Hdf5Type::i64))
    throw Error(ErrorKind::input, fmt::format("{} must hold {}", data_.place(), kReal ? "float64" : "int64"));
  rows_ = shape[0], columns_ = static_cast<int>(shape[1]);
  const Hdf5Dataset sums = file.dataset(checksums_of(name));
  const std::int64_t blocks = (rows_ + kRows - 1) / kRows;
  if (sums.shape() != std::vector<std::int64_t>{blocks})
    throw Error(ErrorKind::input,
                fmt::format("{} has shape [{}] but must have [{}]", sums.place(), fmt::join(sums.shape(), ", "), blocks));
  checksums_.resize(static_cast<std::size_t>(blocks));
  sums.read(0, blocks, checksums_.data());
  checked_.assign(checksums_.size(), false);
}

template <class T>
HostVector<T> SummedTable<T>::read(std::int64_t begin, std::int64_t end,
                                   const std::function<void(const std::string&)>& reject) {
  if (begin < 0 || begin > end || end > rows_)
    throw Error(ErrorKind::internal, fmt::format("{}: rows [{}, {}) of {}", data_.place(), begin, end, rows_));
  if (begin == end) return {};
  for (std::int64_t block = begin / kRows; block * kRows < end; ++block) {
    const auto at = static_cast<std::size_t>(block);
    if (checked_[at]) continue;
    const std::int64_t first = block * kRows, last = std::min(rows_, first + kRows);
    HostVector<T> all(static_cast<std::size_t>((last - first) * columns_));
    data_.read(first, last - first, all.data());
    if (sum_of(all) != checksums_[at]) reject(fmt::format("the checksum of its rows [{}, {}) differs", first, last));
    checked_[at] = true;
  }
  const std::int64_t count = (end - begin) * columns_;
  require_host_memory(count * static_cast<std::int64_t>(sizeof(T)), data_.place().c_str());
  HostVector<T> numbers(static_cast<std::size_t>(count));
  data_.read(begin, end - begin, numbers.data());
  return numbers;
}

template <class T>
void SummedTable<T>::verify(const std::function<void(const std::string&)>& reject) {
  checked_.assign(checked_.size(), false);
  for (std::int64_t begin = 0; begin < rows_; begin += kRows) read(begin, std::min(rows_, begin + kRows), reject);
}

template <class T>
void write_summed_table(Hdf5Writer& file, const std::string& name, std::int64_t rows, int columns,
                        const std::function<HostVector<T>(std::int64_t, std::int64_t)>& rows_between) {
  if (rows == 0) return;
  constexpr std::int64_t kBlock = SummedTable<T>::kRows;
  auto data = file.create_dataset<T>(name, {rows, columns});
  std::vector<std::uint64_t> sums;
  for (std::int64_t begin = 0; begin < rows; begin += kBlock) {
    const std::int64_t end = std::min(rows, begin + kBlock);
    const HostVector<T> numbers = rows_between(begin, end);
    data.write(begin, end - begin, numbers.data());
    sums.push_back(sum_of(numbers));
  }
  file.create_dataset<std::uint64_t>(checksums_of(name), {std::ssize(sums)}).write(0, std::ssize(sums), sums.data());
}

template class SummedTable<double>;
template class SummedTable<std::int64_t>;
template void write_summed_table(Hdf5Writer&, const std::string&, std::int64_t, int,
                                 const std::function<HostVector<double>(std::int64_t, std::int64_t)>&);
template void write_summed_table(Hdf5Writer&, const std::string&, std::int64_t, int,
                                 const std::function<HostVector<std::int64_t>(std::int64_t, std::int64_t)>&);

}  // namespace shardmat
