// One line of JSON for each request, to a file or to standard output.
//
// Threads: the thread of the event loop.
#pragma once

#include <string>

#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

/// The line of a request, with its end. `time`: when the reply was sent, in seconds since 1970.
std::string access_line(const RequestRecord& request, double time);

class AccessLog {
 public:
  /// "-": standard output. Throws Error(resources) if the file cannot be written.
  explicit AccessLog(std::string file);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// A line that cannot be written is lost.
  void write(const RequestRecord& request);
  /// Opens the file anew: it may have been renamed. Throws as the constructor, and then goes on with the old one.
  void reopen();

 private:
  std::string file_;
  int descriptor_ = -1;
  bool failed_ = false;
};

}  // namespace shardmat::serve
