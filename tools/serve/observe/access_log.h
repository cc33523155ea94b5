// One line of JSON for each request, to a file or to standard output.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <string>

#include "tools/serve/http/http_message.h"
#include "tools/serve/words/log_writer.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {

/// The line of a request, with its end. `time`: when the reply was sent, in seconds since 1970.
std::string access_line(const RequestRecord& request, double time);

class AccessLog {
 public:
  /// "-": standard output. Throws Error(resources) if the file cannot be written.
  explicit AccessLog(std::string file);

  /// A line that cannot be written is lost. Never blocks.
  void write(const RequestRecord& request) { writer_.write(access_line(request, seconds_since_1970())); }
  /// Opens the file anew: it may have been renamed. Throws as the constructor, and then goes on with the old one.
  void reopen() { writer_.reopen(open_file()); }
  std::uint64_t lost_lines() const { return writer_.dropped(); }

 private:
  static LogWriter::Words words();
  int open_file() const;

  std::string file_;
  LogWriter writer_;
};

}  // namespace shardmat::serve
