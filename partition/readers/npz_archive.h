// A zip archive whose members are .npy arrays, as numpy.savez writes it. Only for files that are compiled with libzip.
#pragma once

#include <zip.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kernels/base/host_vector.h"
#include "partition/files/input_file.h"
#include "partition/readers/npy_header.h"

namespace shardmat {

class NpzArchive {
 public:
  /// Throws Error(input) if it is no regular file, cannot be read as a zip archive or has two members of one name.
  explicit NpzArchive(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }
  zip_t* get() const { return zip_.get(); }
  bool has(const std::string& name) const;  ///< a member "name.npy"
  /// Throws Error(input) "path: what".
  [[noreturn]] void fail(const std::string& what, const std::string& setting = {}) const;

 private:
  struct Discard {
    void operator()(zip_t* zip) const { zip_discard(zip); }
  };
  void require_distinct_names() const;

  InputFile file_;
  std::unique_ptr<zip_t, Discard> zip_;
};

/// One array of an archive, read from its start to its end. All functions throw Error(input) naming archive and member.
class NpzMember {
 public:
  NpzMember(const NpzArchive& archive, const std::string& name);

  std::int64_t count() const { return header_.count; }
  /// As choose_part().
  void choose(ComplexPart part) { choose_part(source_, header_, part); }
  bool complex() const { return header_.kind == 'c'; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  bool fortran_order() const { return header_.fortran_order; }
  [[noreturn]] void fail(const std::string& what) const;

  /// Reads the next `count` elements as f64 or int64. Compares the checksum after the last element.
  template <class T>
  void next(T* out, std::int64_t count);
  /// The text of a member that holds one string.
  std::string text();

 private:
  struct Close {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  void read(void* to, std::size_t size);
  void require_end();
  [[noreturn]] void fail_read();

  std::string source_;
  std::int64_t size_ = 0;
  std::unique_ptr<zip_file_t, Close> file_;
  NpyHeader header_;
  HostVector<char> bytes_;
  std::int64_t left_ = 0;
};

}  // namespace shardmat
