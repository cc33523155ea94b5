// Entries of a text file with an entry a line, as rank 0 reads them. Where no header says the sizes, the whole text is gone
// through once more to find them. Internal to readers/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "partition/readers/entry_reader.h"

namespace shardmat {

/// What a line says. `mirrored`: it also stands for the entry in its transposed place.
struct TextEntry {
  std::int64_t row = 0, col = 0;
  double value = 0;
  bool mirrored = false;
};

/// A format: turns lines into entries. Called by several threads concurrently.
class TextEntryFormat {
 public:
  virtual ~TextEntryFormat() = default;
  /// The entry of the line that begins at `line` and ends with '\n'; nothing for a line without one. Rows and columns are
  /// within the matrix. Without with_value the value may be left out. Throws LineFault.
  virtual std::optional<TextEntry> entry_of(const char* line, bool with_value) const = 0;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;
  /// As EntryReader::unknowns().
  virtual std::shared_ptr<const UnknownList> unknowns() const { return nullptr; }
  /// Bytes of the header, which ends with a line.
  virtual std::int64_t body() const { return 0; }
  /// Lines with an entry that the header promises; -1 if it says nothing.
  virtual std::int64_t promised() const { return -1; }
};

/// Reads the entries of `source`. One share. Entries are validated as a whole.
std::unique_ptr<EntryReader> make_text_entries(std::unique_ptr<TextSource> source, std::unique_ptr<TextEntryFormat> format,
                                               const ReadLimits& limits);

/// Calls visit(line) for every line of the text, in pieces on several threads. Throws Error(input) with the line's number
/// for the first LineFault.
void for_each_line(TextSource& source, const ReadLimits& limits, const std::function<void(const char*)>& visit);

/// The first byte that is no blank is at this place of the line, '\n' for an empty line.
const char* first_word(const char* line);

}  // namespace shardmat
