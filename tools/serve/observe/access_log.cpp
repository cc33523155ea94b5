#include "tools/serve/observe/access_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/words/log.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMostPathBytes = 1024;

}  // namespace

std::string access_line(const RequestRecord& request, double time) {
  const RequestHead& head = request.head;
  json line{{"time", utc(time)}, {"request_id", head.request_id}, {"client", head.peer.address}};
  if (!head.trace_id.empty()) line["trace_id"] = head.trace_id;
  if (head.rights) line["token"] = head.rights->name();
  line["method"] = head.method, line["path"] = head.target.substr(0, kMostPathBytes);
  line["status"] = request.status;
  if (!request.code.empty()) line["code"] = request.code;
  line["bytes_in"] = request.bytes_in, line["bytes_out"] = request.bytes_out, line["seconds"] = request.seconds;
  if (const auto& times = request.times) {
    line["queue_seconds"] = times->queue;
    line["copy_seconds"] = times->copy_in + times->copy_out;
    line["product_seconds"] = times->product;
    line["batch"] = fmt::format("{}/{}", times->columns, times->width);
  }
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

AccessLog::AccessLog(std::string file) : file_(std::move(file)), writer_(open_file(), words()) {}

LogWriter::Words AccessLog::words() {
  return {[](std::uint64_t lost) {
            const json line{{"time", utc(seconds_since_1970())}, {"lost_lines", lost}};
            return line.dump() + "\n";
          },
          [](const std::string& why) { log_line(fmt::format("lines of the access log are lost: {} (--access-log)", why)); }};
}

int AccessLog::open_file() const {
  const int descriptor = file_ == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                      : open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (descriptor < 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", file_, std::strerror(errno)), "access-log");
  return descriptor;
}

}  // namespace shardmat::serve
