#include "tools/serve/observe/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace shardmat::serve {
namespace {

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

const double kStarted = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();

}  // namespace

void write_process_figures(PrometheusText& text) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  text.family("process_cpu_seconds_total", "counter", "CPU time of the front end.");
  text.sample(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  double virtual_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  text.family("process_virtual_memory_bytes", "gauge", "Virtual memory of the front end.");
  text.sample(virtual_pages * page);
  text.family("process_resident_memory_bytes", "gauge",
              "Resident memory of the front end, the used part of the arena included.");
  text.sample(resident_pages * page);
  std::error_code error;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  text.family("process_open_fds", "gauge", "Open descriptors of the front end.");
  text.sample(error ? 0 : static_cast<double>(std::distance(begin(descriptors), end(descriptors))));
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  text.family("process_max_fds", "gauge", "Most descriptors that the front end may open.");
  text.sample(static_cast<double>(limit.rlim_cur));
  text.family("process_start_time_seconds", "gauge", "When the front end started, in seconds since 1970.");
  text.sample(kStarted);
}

}  // namespace shardmat::serve
