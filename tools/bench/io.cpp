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
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "kernels/base/timer.h"
#include "partition/generators/generator.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "partition/writers/writer.h"
#include "tools/bench/bench.h"
#include "tools/bench/outputs.h"
#include "tools/cli/checks.h"
#include "tools/cli/environment.h"
#include "tools/cli/peak_memory.h"
#include "tools/cli/report_option.h"

namespace shardmat::tools {
namespace {

struct Options {
  std::string matrix = "elasticity:n=50";
  std::string directory = ".";
  int repetitions = 5;
  std::string json;
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
  std::vector<double> read, write, copy;  ///< seconds, one a run
  std::int64_t text_bytes = 0, file_bytes = 0, matrix_bytes = 0, nnz = 0;
};

class IoBench {
 public:
  explicit IoBench(const Options& options) : options_(options), scratch_(options.directory) {
    const auto source = make_generator(options.matrix);
    name_ = source->name();
    if (options.json != "-") fmt::print("Writing {} as Matrix Market text …\n", name_);
    std::fflush(stdout);
    write_matrix(text_path(), *source);
    peak_.emplace();
  }

  /// Saves what there is after every run.
  void measure_all(const GrowingReport& file) {
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      measure();
      file.save([&] { return json(); });
    }
  }

  std::string text() const {
    const auto memory = static_cast<double>(peak_->bytes()), matrix = static_cast<double>(times_.matrix_bytes);
    const double rate = static_cast<double>(times_.text_bytes) / median(times_.read);
    std::string text = fmt::format("{} of text, {} nonzeros, {} threads, medians of {} runs\n\n",
                                   human_bytes(static_cast<double>(times_.text_bytes)), human_count(times_.nnz),
                                   thread_count(), options_.repetitions);
    text += fmt::format("  read text to checked CSR   {:>10}   {}/s, {}/s a thread\n", human_seconds(median(times_.read)),
                        human_bytes(rate), human_bytes(rate / thread_count()));
    text += fmt::format("  partition, write, fsync    {:>10}   {} with tables for 2, 4 and 8 parts\n",
                        human_seconds(median(times_.write)), human_bytes(static_cast<double>(times_.file_bytes)));
    text += fmt::format("  cp and fsync of that file  {:>10}\n", human_seconds(median(times_.copy)));
    text += fmt::format("  peak anonymous memory      {:>10}   {:.2f} times the matrix ({})\n", human_bytes(memory),
                        memory / matrix, human_bytes(matrix));
    return text;
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < times_.copy.size(); ++i)
      runs.push_back({{"read_s", times_.read[i]}, {"write_s", times_.write[i]}, {"copy_s", times_.copy[i]}});
    return {
        {"command", command_line()},
        {"matrix", name_},
        {"nnz", times_.nnz},
        {"threads", thread_count()},
        {"text_bytes", times_.text_bytes},
        {"file_bytes", times_.file_bytes},
        {"matrix_bytes", times_.matrix_bytes},
        {"peak_anonymous_bytes", peak_->bytes()},
        {"median", {{"read_s", median(times_.read)}, {"write_s", median(times_.write)}, {"copy_s", median(times_.copy)}}},
        {"runs", runs}};
  }

 private:
  std::filesystem::path text_path() const { return scratch_ / "matrix.mtx"; }

  void measure() {
    Timer timer;
    auto matrix = std::make_shared<const HostCsr>(read_matrix(text_path()));
    times_.read.push_back(timer.seconds());
    times_.matrix_bytes = matrix->bytes();
    times_.nnz = matrix->nnz();
    const auto rows = make_memory_source(std::move(matrix), "matrix");
    WriteOptions options;
    options.parts = {2, 4, 8};
    timer = Timer();
    write_shard_file(scratch_ / "matrix.h5", *rows, options);
    times_.write.push_back(timer.seconds());
    timer = Timer();
    copy_and_flush(scratch_ / "matrix.h5", scratch_ / "copy.h5");
    times_.copy.push_back(timer.seconds());
    times_.text_bytes = static_cast<std::int64_t>(std::filesystem::file_size(text_path()));
    times_.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(scratch_ / "matrix.h5"));
  }

  Options options_;
  Scratch scratch_;
  std::string name_;
  std::optional<PeakMemory> peak_;  ///< from when the text is written
  Times times_;
};

int run(const Options& options) {
  const Outputs outputs{options.json, ""};
  require_outputs(outputs, "", {});
  const GrowingReport file(outputs, "");
  IoBench run(options);
  run.measure_all(file);
  if (options.json != "-") fmt::print("{}", run.text());
  file.finish(run.json());
  return 0;
}

}  // namespace

std::function<int()> add_bench_io(const CommandLine& bench) {
  const CommandLine app = bench.add_subcommand("io", "Read text and write a shard file, compared with cp and fsync");
  auto options = std::make_shared<Options>();
  app.in(Topic::input)
      .add_option("--matrix", options->matrix, "generator of the matrix (the default makes 1 GB of text)")
      ->capture_default_str()
      ->common();
  app.in(Topic::output)
      .add_option("--directory", options->directory,
                  "folder for the files (3 GB for the default matrix); they are removed at the end")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--repetitions", options->repetitions, "take the median of N runs")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str()
      ->common();
  add_json_option(app, options->json, ", anew after every run");
  app.footer("\nExample:\n  shardmat bench io --directory /data/scratch --json io.json\n");
  return [options] {
    require_single_process("bench io");
    return run(*options);
  };
}

}  // namespace shardmat::tools
