#include "tools/bench/service/processes.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace shardmat::tools::service_bench {

namespace fs = std::filesystem;

namespace {

fs::path proc(pid_t process) { return fs::path("/proc") / std::to_string(process); }

/// 0 if it has ended.
pid_t parent_of(pid_t process) {
  std::ifstream file(proc(process) / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

}  // namespace

std::vector<pid_t> family_of(pid_t process) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error))
    if (const pid_t one = std::atoi(entry.path().filename().c_str()); one > 0) children.emplace(parent_of(one), one);
  std::vector<pid_t> family{process};
  for (std::size_t i = 0; i < family.size(); ++i) {
    const auto [first, last] = children.equal_range(family[i]);
    for (auto child = first; child != last; ++child) family.push_back(child->second);
  }
  return family;
}

std::vector<std::string> words_of(pid_t process) {
  std::ifstream file(proc(process) / "cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

Usage usage_of(pid_t process) {
  Usage usage;
  std::error_code error;
  for (const fs::directory_entry& thread : fs::directory_iterator(proc(process) / "task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    double nanoseconds = 0;
    if (file >> nanoseconds) usage.cpu_seconds += nanoseconds * 1e-9;
  }
  std::ifstream status(proc(process) / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) usage.own_bytes = std::atoll(line.c_str() + 8) * 1024;
    if (line.starts_with("RssShmem:")) usage.shared_bytes = std::atoll(line.c_str() + 9) * 1024;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(proc(process) / "fd", error)) {
    static_cast<void>(entry);
    ++usage.descriptors;
  }
  std::ifstream maps(proc(process) / "maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (line.find(" /dev/shm/") != std::string::npos && std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) == 2)
      usage.shm_bytes += static_cast<std::int64_t>(end - begin);
  }
  return usage;
}

double machine_busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0;
  file >> word >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts;
  return (user + nice + system + interrupts + soft_interrupts) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_busy_seconds() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    total += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return total;
}

bool is_virtual_machine() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return line.find(" hypervisor") != std::string::npos;
  return false;
}

std::string load_averages() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen;
  file >> one >> five >> fifteen;
  return one + " " + five + " " + fifteen;
}

}  // namespace shardmat::tools::service_bench
