// From text to shard file, against what the disk alone costs: reading a Matrix Market file, writing the shard file, and
// copying that file with fsync.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/generators/generator.h"
#include "partition/readers/reader.h"
#include "partition/shard_file.h"
#include "partition/writers/writer.h"
#include "tools/bench/bench.h"
#include "tools/environment.h"
#include "tools/peak_memory.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string matrix = "elasticity:n=50";
  std::string directory = ".";
  int repetitions = 5;
};

/// A folder that goes away with what is in it.
class Scratch {
 public:
  explicit Scratch(const std::string& directory)
      : path_(std::filesystem::path(directory) / fmt::format("bench-io.{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// What `cp` and `sync` of one file cost.
void copy_and_flush(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  const int fd = ::open(to.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!flushed) throw Error(ErrorKind::resources, fmt::format("cannot flush {}: {}", to.string(), std::strerror(errno)));
  std::filesystem::remove(to);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> read, write, copy;
  std::int64_t matrix_bytes = 0, nnz = 0;
};

Times measure(const std::filesystem::path& text, const Scratch& scratch, int repetitions) {
  Times times;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    Timer timer;
    auto matrix = std::make_shared<const HostCsr>(read_matrix(text));
    times.read.push_back(timer.seconds());
    times.matrix_bytes = matrix->bytes();
    times.nnz = matrix->nnz();
    const auto rows = make_memory_source(std::move(matrix), "matrix");
    WriteOptions options;
    options.parts = {2, 4, 8};
    timer = Timer();
    write_shard_file(scratch / "matrix.h5", *rows, options);
    times.write.push_back(timer.seconds());
    timer = Timer();
    copy_and_flush(scratch / "matrix.h5", scratch / "copy.h5");
    times.copy.push_back(timer.seconds());
  }
  return times;
}

int run(const Options& options) {
  const Scratch scratch(options.directory);
  const auto text_path = scratch / "matrix.mtx";
  const auto source = make_generator(options.matrix);
  fmt::print("Writing {} as Matrix Market text …\n", source->name());
  std::fflush(stdout);
  write_matrix(text_path, *source);
  const PeakMemory peak;
  const Times times = measure(text_path, scratch, options.repetitions);

  const auto text_bytes = static_cast<double>(std::filesystem::file_size(text_path));
  const auto file_bytes = static_cast<double>(std::filesystem::file_size(scratch / "matrix.h5"));
  const auto memory = static_cast<double>(peak.bytes()), matrix = static_cast<double>(times.matrix_bytes);
  const double rate = text_bytes / median(times.read);
  fmt::print("{} of text, {} nonzeros, {} threads, medians of {} runs\n\n", human_bytes(text_bytes), human_count(times.nnz),
             thread_count(), options.repetitions);
  fmt::print("  read text to checked CSR   {:>10}   {}/s, {}/s a thread\n", human_seconds(median(times.read)),
             human_bytes(rate), human_bytes(rate / thread_count()));
  fmt::print("  partition, write, fsync    {:>10}   {} with tables for 2, 4 and 8 parts\n",
             human_seconds(median(times.write)), human_bytes(file_bytes));
  fmt::print("  cp and fsync of that file  {:>10}\n", human_seconds(median(times.copy)));
  fmt::print("  peak anonymous memory      {:>10}   {:.2f} times the matrix ({})\n", human_bytes(memory), memory / matrix,
             human_bytes(matrix));
  return 0;
}

}  // namespace

std::function<int()> add_bench_io(CLI::App& bench) {
  CLI::App* app = bench.add_subcommand("io", "Reading text and writing a shard file, against cp and fsync");
  auto options = std::make_shared<Options>();
  app->add_option("--matrix", options->matrix, "generator of the matrix (the default makes 1 GB of text)")
      ->capture_default_str();
  app->add_option("--directory", options->directory,
                  "folder for the files, which are removed at the end (the default matrix takes 3 GB)")
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions, "take the median of N runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->footer("\nExample:\n  shardmat bench io --directory /data/scratch\n");
  return [options] {
    require_single_process("bench io");
    return run(*options);
  };
}

}  // namespace shardmat::tools
