#include "tools/bench/options.h"

#include "tools/cli/checks.h"
#include "tools/cli/report_option.h"

namespace shardmat::tools {

std::vector<ValueType> RunOptions::value_types() const {
  std::vector<ValueType> result;
  for (const std::string& type : types) result.push_back(parse_value_type(type));
  return result;
}

Size BenchOptions::matrix_size(Backend on) const {
  return size != "auto" ? parse_size(size) : on == Backend::cuda ? Size::full : Size::small;
}

int RunOptions::usual_repetitions(Backend on) const { return repetitions > 0 ? repetitions : on == Backend::cuda ? 21 : 5; }

Option add_list(const CommandLine& app, const std::string& name, std::vector<std::string>& list, const std::string& help) {
  Option option = app.add_option(name, list, help)->delimiter(',')->allow_extra_args(false);
  return list.empty() ? option : option->capture_default_str();
}

void add_run_options(const CommandLine& app, RunOptions& o, const std::vector<std::string>& types) {
  add_list(app.in(Topic::input), "--type", o.types, "types of the values, as a list, e.g. f32,f64")
      ->check(one_of(types))
      ->common();
  add_backend_option(app, o.backend, "where to run; auto takes the first GPU if there is one");
  app.in(Topic::computation)
      .add_option(
          "--repetitions", o.repetitions,
          "take the median of N products (default 21 on a GPU, 5 on the host); fewer, but at least 3, if they would take "
          "more than a second")
      ->check(whole_number(1, 1'000'000))
      ->common();
  app.in(Topic::computation)
      .add_flag("--verify,!--no-verify", o.verify,
                "compare every result with a sequential f64 product, or not (default: compare)");
  add_json_option(app, o.json, ", anew after every result");
}

void add_bench_options(const CommandLine& app, BenchOptions& o, const std::vector<std::string>& types) {
  app.add_option(
      "matrix", o.matrices,
      "matrix files (.mtx, .mtx.gz, .npz, .h5) and generators such as elasticity:mesh=part.h5,degree=2 (default: one "
      "matrix of each class)");
  app.in(Topic::input)
      .add_option("--size", o.size,
                  "size of the matrices if none is named. full is meant for GPUs; auto is full on a GPU, else small")
      ->check(one_of({"auto", "tiny", "small", "full"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation).add_flag("--warm", o.warm, "do not flush the caches between products");
  add_run_options(app, o, types);
}

}  // namespace shardmat::tools
