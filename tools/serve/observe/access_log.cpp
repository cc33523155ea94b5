#include "tools/serve/observe/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/observe/log.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMostPathBytes = 1024;

std::string utc(double time) {
  const auto milliseconds = static_cast<long long>(std::floor(time * 1000));
  const std::time_t seconds = milliseconds / 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), milliseconds % 1000);
}

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

AccessLog::AccessLog(std::string file) : file_(std::move(file)) { reopen(); }

AccessLog::~AccessLog() { close(descriptor_); }

void AccessLog::reopen() {
  const int descriptor = file_ == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                      : open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (descriptor < 0) throw Error(ErrorKind::resources, fmt::format("{}: {}", file_, std::strerror(errno)), "access-log");
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
  failed_ = false;
}

void AccessLog::write(const RequestRecord& request) {
  const double time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string line = access_line(request, time);
  const bool written = ::write(descriptor_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written && !failed_)
    log_line(fmt::format("lines of the access log are lost: {} (--access-log)", std::strerror(errno)));
  failed_ = !written;
}

}  // namespace shardmat::serve
