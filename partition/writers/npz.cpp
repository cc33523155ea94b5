// A SciPy archive as libzip writes it: members are made piece by piece when it asks for their bytes, so that the matrix is
// streamed once for the indices and once for the values.
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "partition/writers/writer_list.h"

#ifndef SHARDMAT_HAVE_LIBZIP

namespace shardmat {

void write_npz(const AtomicFile& file, const RowSource&, std::span<const std::int64_t>, const Progress&) {
  throw Error(ErrorKind::input, fmt::format("{}: this build cannot write .npz files because libzip was not found; install "
                                            "libzip-dev and build again, or write a .mtx file",
                                            file.path().string()));
}

}  // namespace shardmat

#else

#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/files/output_file.h"
#include "partition/readers/npy_header.h"

namespace shardmat {
namespace {

/// One array: a header, and pieces of data that next(piece) appends until it appends nothing.
class Member {
 public:
  using Next = std::function<void(std::string& piece)>;
  Member(std::string name, std::string header, std::int64_t data_bytes, Next next)
      : name_(std::move(name)),
        piece_(std::move(header)),
        size_(piece_.size() + static_cast<std::size_t>(data_bytes)),
        next_(std::move(next)) {
    zip_error_init(&error_);
  }
  ~Member() { zip_error_fini(&error_); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const std::string& name() const { return name_; }
  /// What next() threw.
  std::exception_ptr thrown() const { return thrown_; }

  static zip_int64_t answer(void* member, void* data, zip_uint64_t length, zip_source_cmd_t command) noexcept {
    auto& self = *static_cast<Member*>(member);
    switch (command) {
      case ZIP_SOURCE_OPEN:
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE:
        return 0;
      case ZIP_SOURCE_READ:
        return self.read(static_cast<char*>(data), length);
      case ZIP_SOURCE_STAT: {
        auto* const status = static_cast<zip_stat_t*>(data);
        zip_stat_init(status);
        status->size = self.size_;
        status->valid |= ZIP_STAT_SIZE;
        return sizeof *status;
      }
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&self.error_, data, length);
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
      default:
        zip_error_set(&self.error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

 private:
  zip_int64_t read(char* to, std::size_t length) noexcept {
    try {
      std::size_t done = 0;
      while (done < length) {
        if (at_ == piece_.size()) {
          piece_.clear();
          at_ = 0;
          next_(piece_);
          if (piece_.empty()) break;
        }
        const std::size_t count = std::min(length - done, piece_.size() - at_);
        std::memcpy(to + done, piece_.data() + at_, count);
        done += count;
        at_ += count;
      }
      return static_cast<zip_int64_t>(done);
    } catch (...) {
      thrown_ = std::current_exception();
      zip_error_set(&error_, ZIP_ER_INTERNAL, 0);
      return -1;
    }
  }

  std::string name_;
  std::string piece_;
  std::size_t at_ = 0;
  std::size_t size_;
  Next next_;
  std::exception_ptr thrown_;
  zip_error_t error_;
};

template <class To, class Numbers>
void append(std::string& bytes, const Numbers& values) {
  const std::size_t before = bytes.size();
  bytes.resize(before + values.size() * sizeof(To));
  char* to = bytes.data() + before;
  for (const auto value : values) {
    const To converted = static_cast<To>(value);
    std::memcpy(to, &converted, sizeof(To));
    to += sizeof(To);
  }
}

using Members = std::vector<std::unique_ptr<Member> >;

void add_constant(Members& members, const char* name, const std::string& header, const std::string& data) {
  auto bytes = std::make_shared<std::string>(data);
  members.push_back(std::make_unique<Member>(name, header, static_cast<std::int64_t>(data.size()),
                                             [bytes](std::string& piece) { piece.swap(*bytes), bytes->clear(); }));
}

/// An array with one element for each nonzero; convert(piece, view) appends those of a slice.
void add_entries(Members& members, const char* name, const char* type, std::int64_t item_bytes, const RowSource& source,
                 std::span<const std::int64_t> row_ptr, const Progress& progress,
                 std::function<void(std::string&, const CsrView&)> convert) {
  const std::int64_t nnz = row_ptr.back();
  auto row = std::make_shared<std::int64_t>(0);
  members.push_back(std::make_unique<Member>(
      name, make_npy_header(type, {nnz}), nnz * item_bytes,
      [=, &source, convert = std::move(convert), phase = fmt::format("write {}", name)](std::string& piece) {
        while (piece.empty() && *row < source.rows()) {
          const auto start = row_ptr.begin() + *row;
          const auto past = std::upper_bound(start + 1, row_ptr.end(), *start + kSliceEntries);
          const std::int64_t end = std::max(*row + 1, past - row_ptr.begin() - 1);
          source.visit_rows(*row, end, [&](const CsrView& slice) { convert(piece, slice); });
          *row = end;
          report(progress, phase, row_ptr[static_cast<std::size_t>(end)], nnz);
        }
      }));
}

template <class Index>
void add_arrays(Members& members, const char* type, const RowSource& source, std::span<const std::int64_t> row_ptr,
                const Progress& progress) {
  add_entries(members, "indices.npy", type, sizeof(Index), source, row_ptr, progress,
              [](std::string& piece, const CsrView& slice) { append<Index>(piece, slice.col_idx); });
  auto at = std::make_shared<std::size_t>(0);
  members.push_back(std::make_unique<Member>(
      "indptr.npy", make_npy_header(type, {static_cast<std::int64_t>(row_ptr.size())}),
      static_cast<std::int64_t>(row_ptr.size() * sizeof(Index)), [=](std::string& piece) {
        const std::size_t count = std::min(row_ptr.size() - *at, static_cast<std::size_t>(kSliceEntries));
        append<Index>(piece, row_ptr.subspan(*at, count));
        *at += count;
      }));
}

Members members_of(const RowSource& source, std::span<const std::int64_t> row_ptr, const Progress& progress) {
  Members members;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (row_ptr.back() <= kMost && source.cols() <= kMost && source.rows() <= kMost)
    add_arrays<std::int32_t>(members, "<i4", source, row_ptr, progress);
  else add_arrays<std::int64_t>(members, "<i8", source, row_ptr, progress);
  add_constant(members, "format.npy", make_npy_header("|S3", {}), "csr");
  const std::int64_t sizes[] = {source.rows(), source.cols()};
  std::string shape;
  append<std::int64_t>(shape, std::span(sizes));
  add_constant(members, "shape.npy", make_npy_header("<i8", {2}), shape);
  add_entries(members, "data.npy", "<f8", 8, source, row_ptr, progress,
              [](std::string& piece, const CsrView& slice) { append<double>(piece, slice.values); });
  return members;
}

/// libzip writes beside our temporary, to a name of ours with a random end.
struct TemporaryOfLibzip {
  std::filesystem::path ours;
  std::optional<UnfinishedFile> found;

  /// Called when zip_close() begins, with that file there.
  static void find(zip_t*, double, void* state) noexcept try {
    auto& self = *static_cast<TemporaryOfLibzip*>(state);
    if (self.found) return;
    for (const auto& entry : std::filesystem::directory_iterator(self.ours.parent_path()))
      if (entry.path().filename().string().starts_with(self.ours.filename().string() + "."))
        self.found.emplace(entry.path());
  } catch (...) {  // the file is written all the same
  }
};

}  // namespace

void write_npz(const AtomicFile& file, const RowSource& source, std::span<const std::int64_t> row_ptr,
               const Progress& progress) {
  file.require_file(".npz");
  const Members members = members_of(source, row_ptr, progress);
  int code = 0;
  std::unique_ptr<zip_t, decltype([](zip_t* open) { zip_discard(open); })> zip(
      zip_open(file.temporary().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!zip) fail_write(file.path(), std::strerror(errno));
  for (const auto& member : members) {
    zip_source_t* const bytes = zip_source_function(zip.get(), Member::answer, member.get());
    const zip_int64_t index = bytes == nullptr ? -1 : zip_file_add(zip.get(), member->name().c_str(), bytes, 0);
    if (index < 0 || zip_set_file_compression(zip.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) {
      if (index < 0) zip_source_free(bytes);
      fail_write(file.path(), zip_strerror(zip.get()));
    }
  }
  TemporaryOfLibzip temporary{file.temporary(), {}};
  zip_register_progress_callback_with_state(zip.get(), 1, TemporaryOfLibzip::find, nullptr, &temporary);
  if (zip_close(zip.get()) != 0) {
    for (const auto& member : members)
      if (member->thrown()) std::rethrow_exception(member->thrown());
    fail_write(file.path(), zip_strerror(zip.get()));
  }
  zip.release();
}

}  // namespace shardmat

#endif
