// What the service itself writes into the library: files of clients, and a hidden folder of its own for arrays and for what
// is not complete. The folder has the id of the state directory in its name, so that services that share a library leave one
// another's files alone.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/serve/state/state_directory.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

class LibraryFiles {
 public:
  LibraryFiles(std::filesystem::path library, const std::string& id);

  const std::filesystem::path& path() const { return library_; }
  /// The source of a file in the own folder: a path in the library.
  std::string own(const std::string& name) const { return folder_ + "/" + name; }
  /// True if a part of the path has the name of such a folder, of this service or another one: clients name nothing there.
  static bool is_of_service(const std::string& source);
  /// Makes the own folder if it is not there. Nothing, or why that is impossible.
  std::optional<Problem> make_folder() const;
  /// Removes from the own folder what no matrix has as its source: arrays, and what an earlier service did not complete.
  /// Arrays of a matrix that lacks its own file are set aside: they may be later ones, of a backup made meanwhile.
  void clean(const std::vector<WantedMatrix>& matrices) const;
  /// Removes a file of the own folder.
  void remove(const std::string& source) const;

 private:
  std::filesystem::path library_;
  std::string folder_;
};

/// A file on its way into the library. It has no name until it is complete, so that the system removes it if this process
/// ends before; on file systems that keep no such file (NFS), it has a name in the own folder, which is removed with this
/// object, or by clean().
class IncomingFile {
 public:
  /// `number`: unlike those of all other files of this service that are on their way.
  IncomingFile(const LibraryFiles& library, std::uint64_t number) : library_(library), number_(number) {}
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  /// Appends bytes. Nothing, or why they cannot be written.
  std::optional<Problem> write(std::span<const std::byte> bytes);
  /// Gives the file its name in the library. 409 if there is a file of this name: none is ever replaced.
  std::optional<Problem> finish(const std::string& source);
  /// Closes the file, whose bytes then go unless it has its name and is kept.
  void close(bool kept);

 private:
  std::optional<Problem> open();

  const LibraryFiles& library_;
  std::uint64_t number_;
  int file_ = -1;
  std::filesystem::path temporary_;  ///< empty: the file has none
  std::filesystem::path name_;       ///< empty: the file has none yet
};

/// Gives a file another name on the same file system. EEXIST if a file has it. Returns errno; 0: done.
int rename_without_replacing(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace shardmat::serve
