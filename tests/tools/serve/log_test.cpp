// Logs that hold nobody up, what launchers say, and the cores of ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/serve/ranks/cores.h"
#include "tools/serve/ranks/shared_cores.h"
#include "tools/serve/ranks/worker_log.h"
#include "tools/serve/words/log_writer.h"
#include "tools/serve/words/utc.h"

namespace shardmat::serve {
namespace {

LogWriter::Words words() {
  return {[](std::uint64_t lost) { return "lost " + std::to_string(lost) + "\n"; }};
}

/// Reads until the text has come; the test hangs, and is ended, if it does not.
void read_until(int descriptor, std::string& text, const std::string& last) {
  char bytes[4096];
  while (text.find(last) == std::string::npos) {
    const ssize_t size = read(descriptor, bytes, sizeof bytes);
    ASSERT_GT(size, 0);
    text.append(bytes, static_cast<std::size_t>(size));
  }
}

TEST(LogWriter, CountsWhatNobodyReadsAndSaysSo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LogWriter writer(ends[1], words(), 1000);
  const std::string line = std::string(99, 'a') + "\n";
  for (int i = 0; i < 5000; ++i) writer.write(line);  // more than a pipe takes
  const std::uint64_t lost = writer.dropped();
  EXPECT_GT(lost, 0u);
  std::string text;
  read_until(ends[0], text, "lost ");
  writer.flush(60);
  writer.write("end\n");
  read_until(ends[0], text, "end\n");
  std::uint64_t lines = 0, told = 0;
  for (std::size_t at = 0; (at = text.find(line, at)) != std::string::npos; at += line.size()) ++lines;
  for (std::size_t at = 0; (at = text.find("lost ", at)) != std::string::npos; at += 5)
    told += std::stoull(text.substr(at + 5));
  EXPECT_EQ(lines + lost, 5000u);
  EXPECT_EQ(told, lost);
  close(ends[0]);
}

TEST(LogWriter, GoesOnAfterErrorsAndInAnotherFile) {
  std::string why;
  LogWriter::Words own = words();
  own.failed = [&](const std::string& text) { why = text; };
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LogWriter writer(open("/dev/full", O_WRONLY), own);
  writer.write("a\n"), writer.write("b\n");
  writer.reopen(ends[1]);
  writer.write("c\n");
  std::string text;
  read_until(ends[0], text, "c\n");
  EXPECT_EQ(text, "lost 2\nc\n");
  EXPECT_EQ(why, "No space left on device");
  EXPECT_EQ(writer.dropped(), 2u);
  close(ends[0]);
}

TEST(WorkerLog, BeginsAnewWhenItIsLarge) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("worker_log_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::filesystem::path file = folder / "workers.log";
  const auto letter = [](int number) { return static_cast<char>('a' + number % 26); };
  {
    EventLoop loop;
    WorkerLog log(loop, file, 1000);
    const int pipe = log.open_pipe();
    for (int i = 0; i < 100; ++i) {
      const std::string line = "line " + std::to_string(i) + " " + std::string(50, letter(i)) + "\n";
      ASSERT_EQ(write(pipe, line.data(), line.size()), static_cast<ssize_t>(line.size()));
      log.read();
    }
    close(pipe);
    EXPECT_EQ(log.lost_lines(), 0u);
  }
  int next = -1;
  for (const char* end : {".3", ".2", ".1", ""}) {  // the last lines, in order and whole
    std::ifstream text(file.string() + end);
    EXPECT_LE(std::filesystem::file_size(file.string() + end), 1000u);
    for (std::string time, word, rest; text >> time >> word;) {
      int number = 0;
      ASSERT_TRUE(text >> number >> rest);
      EXPECT_EQ(number, next < 0 ? number : next);
      EXPECT_EQ(rest, std::string(50, letter(number)));
      next = number + 1;
    }
  }
  EXPECT_EQ(next, 100);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".4"));
  std::filesystem::remove_all(folder);
}

TEST(Utc, HasMilliseconds) { EXPECT_EQ(utc(1700000000.25), "2023-11-14T22:13:20.250Z"); }

TEST(SignalledRank, IsFoundInTheWordsOfTheLauncher) {
  const auto found =
      signalled_rank("mpirun noticed that process rank 12 with PID 77 on node a exited on signal 9 (Killed).");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 12);
  EXPECT_EQ(found->signal, 9);
  for (const char* line : {"", "process rank 1", "exited on signal 9", "process rank x exited on signal y"})
    EXPECT_FALSE(signalled_rank(line)) << line;
}

TEST(Cores, ListsAreRead) {
  EXPECT_EQ(cpus_of("0-3,8"), (std::set<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpus_of("5"), std::set<int>{5});
  for (const char* list : {"", "x", "3-1", "-1", "0-99999999"}) EXPECT_TRUE(cpus_of(list).empty()) << list;
}

TEST(Cores, RanksThatAreBoundToFewAreWarnedOf) {
  std::vector<service::Hello> hellos(2);
  for (service::Hello& hello : hellos) hello.ranks = 2, hello.loads_in_background = true;
  hellos[0].cpus = "0", hellos[1].cpus = "1";
  EXPECT_EQ(core_warning(hellos, 2), "");
  EXPECT_NE(core_warning(hellos, 8).find("bound the ranks to 2 of 8 free cores"), std::string::npos);
  hellos[0].cpus = hellos[1].cpus = "0-7";
  EXPECT_EQ(core_warning(hellos, 8), "");
  hellos[0].cpus = hellos[1].cpus = "0", hellos[0].loads_in_background = hellos[1].loads_in_background = false;
  EXPECT_EQ(core_warning(hellos, 8), "");  // on GPUs
}

TEST(Cores, ThoseOfOtherServicesAreFound) {
  namespace fs = std::filesystem;
  const fs::path proc = fs::temp_directory_path() / ("proc_" + std::to_string(getpid()));
  const auto process = [&](const char* id, const std::string& command, const std::string& cores) {
    fs::create_directories(proc / id);
    std::ofstream(proc / id / "cmdline", std::ios::binary) << command;
    std::ofstream(proc / id / "status") << "Name:\tshardmat\nCpus_allowed:\tff\nCpus_allowed_list:\t" << cores
                                        << "\nMems_allowed:\t1\n";
  };
  using namespace std::string_literals;
  const std::string rank = "/usr/bin/shardmat\0worker\0--control\0x\0"s;
  process("10", rank, "0-3");                           // ours
  process("11", rank, "2-5");                           // another service's
  process("12", "shardmat\0worker\0"s, "3");            // a further one's
  process("13", rank, "6-7");                           // on other cores
  process("14", "shardmat\0solve\0worker\0"s, "0-7");   // no service
  process("15", "/bin/shardmatter\0worker\0"s, "0-7");  // another program
  process("16", "", "0-7");                             // a thread of the kernel
  fs::create_directories(proc / "17" / "cmdline");  // opens, but cannot be read, as that of a process that ends meanwhile
  fs::create_directories(proc / "self");
  std::vector<service::Hello> hellos(1);
  hellos[0].loads_in_background = true, hellos[0].cpus = "0-3";
  const SharedCores shared = shared_cores(hellos, {10}, proc);
  EXPECT_EQ(shared, (SharedCores{{2, 3}, {11, 12}}));
  EXPECT_NE(sharing_text(shared).find("2 of the ranks' cores (processes 11, 12)"), std::string::npos);
  EXPECT_EQ(sharing_text(shared_cores(hellos, {10, 11, 12}, proc)), "");
  hellos[0].loads_in_background = false;  // on a GPU
  EXPECT_EQ(shared_cores(hellos, {10}, proc), SharedCores{});
  fs::remove_all(proc);
}

}  // namespace
}  // namespace shardmat::serve
