#include "tools/client/client_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "kernels/matrix/csr.h"
#include "partition/readers/npy_header.h"
#include "partition/readers/reader.h"
#include "tools/cli/checks.h"
#include "tools/client/mapped_file.h"

namespace shardmat::tools {
namespace {

using json = nlohmann::ordered_json;

struct Options : ServiceAddress {
  std::string name, source, type = "f64", kernel = "auto", exchange = "auto", sort = "auto", coordinates;
  bool updatable = false, solvable = false, pinned = false;
  std::vector<std::string> arrays;
  std::int64_t cols = 0;
};

json settings_of(const Options& o) {
  json settings{{"type", o.type},           {"kernel", o.kernel},     {"exchange", o.exchange}, {"sort", o.sort},
                {"updatable", o.updatable}, {"solvable", o.solvable}, {"pinned", o.pinned}};
  if (!o.coordinates.empty()) settings["coordinates"] = o.coordinates;
  return settings;
}

int show_loaded(const HttpReply& reply) {
  const json loaded = json::parse(reply.text());
  fmt::print("{}", text_of_matrix(loaded));
  warn_unsaved(loaded);
  return 0;
}

int load(const Options& o) {
  HttpClient client = connect(o);
  json wanted = settings_of(o);
  wanted["source"] = o.source;
  const std::string body = wanted.dump();
  return show_loaded(ask(client, "POST", "/v1/matrices/" + o.name + "/load?wait=1", std::as_bytes(std::span(body))));
}

/// A .npy file with one array of numbers.
class NpyFile {
 public:
  explicit NpyFile(const std::string& name) : name_(name), file_(name) {
    header_ = read_npy_header(name, [this](void* to, std::size_t size) {
      if (size > file_.text().size() - position_) fail("its header is truncated");
      std::memcpy(to, file_.text().data() + position_, size);
      position_ += size;
    });
    if (header_.shape.size() != 1) fail("it must have one array with one dimension");
    const std::size_t there = file_.text().size() - static_cast<std::size_t>(header_.data_offset);
    if (static_cast<std::size_t>(header_.count) > there / static_cast<std::size_t>(header_.item_bytes))
      fail("it is truncated");
  }

  HostVector<std::int64_t> integers() const {
    HostVector<std::int64_t> all(static_cast<std::size_t>(header_.count));
    npy_to_int64(name_, header_, data(), all.size(), all.data());
    return all;
  }
  HostVector<double> numbers() const {
    HostVector<double> all(static_cast<std::size_t>(header_.count));
    npy_to_f64(name_, header_, data(), all.size(), all.data());
    return all;
  }

 private:
  const char* data() const { return file_.text().data() + header_.data_offset; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("{}: {}; write it with numpy.save", name_, what));
  }

  std::string name_;
  MappedFile file_;
  std::size_t position_ = 0;
  NpyHeader header_;
};

/// The arrays of a scipy.sparse.csr_array: indptr, indices, data. The service checks their entries.
HostCsr matrix_of_arrays(const Options& o) {
  HostCsr matrix;
  matrix.row_ptr = NpyFile(o.arrays[0]).integers();
  if (matrix.row_ptr.empty())
    throw Error(ErrorKind::input, fmt::format("{}: it is empty, but a matrix has one offset more than rows", o.arrays[0]));
  matrix.col_idx = NpyFile(o.arrays[1]).integers();
  matrix.values = NpyFile(o.arrays[2]).numbers();
  for (const auto& [file, count] : {std::pair(&o.arrays[1], matrix.col_idx.size()), {&o.arrays[2], matrix.values.size()}})
    if (std::cmp_not_equal(count, matrix.nnz()))
      throw Error(ErrorKind::input, fmt::format("{}: it has {} numbers, but the last offset of {} is {}", *file, count,
                                                o.arrays[0], matrix.nnz()));
  matrix.rows = std::ssize(matrix.row_ptr) - 1;
  matrix.cols = o.cols == 0 ? matrix.rows : o.cols;
  return matrix;
}

HostCsr matrix_of(const Options& o) {
  if (o.arrays.size() == 3) return matrix_of_arrays(o);
  if (o.arrays.size() != 1)
    throw Error(ErrorKind::usage,
                fmt::format("a matrix is one file, or three: indptr, indices and data; {} were given", o.arrays.size()));
  if (o.cols != 0) throw Error(ErrorKind::usage, "a matrix file says itself how many columns there are", "cols");
  return read_matrix(o.arrays[0]);
}

template <class T>
void append(HostVector<std::byte>& body, std::span<const T> items) {
  const auto bytes = std::as_bytes(items);
  body.insert(body.end(), bytes.begin(), bytes.end());
}

/// As the service takes it: a line, then the arrays.
HostVector<std::byte> body_of(const HostCsr& matrix, bool f32) {
  const std::string line = fmt::format("%%Shardmat CSR rows={} cols={} nonzeros={} offsets=i64 columns=i64 values={}\n",
                                       matrix.rows, matrix.cols, matrix.nnz(), f32 ? "f32" : "f64");
  HostVector<std::byte> body;
  append<char>(body, line);
  append<std::int64_t>(body, matrix.row_ptr);
  append<std::int64_t>(body, matrix.col_idx);
  if (!f32) append<double>(body, matrix.values);
  for (std::size_t i = 0; f32 && i < matrix.values.size(); ++i) {
    const auto value = static_cast<float>(matrix.values[i]);
    append<float>(body, std::span(&value, 1));
  }
  return body;
}

int load_arrays(const Options& o) {
  const HostCsr matrix = matrix_of(o);
  const bool f32 = o.type == "f32";
  require_in_range(f32 ? ValueType::f32 : ValueType::f64, matrix.values, o.arrays.back());
  const HostVector<std::byte> body = body_of(matrix, f32);
  const json settings = settings_of(o);
  std::string query;
  for (const auto& [key, value] : settings.items())
    query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key,
                         value.is_boolean() ? (value.get<bool>() ? "1" : "0") : value.get<std::string>());
  HttpClient client = connect(o);
  return show_loaded(ask(client, "PUT", "/v1/matrices/" + o.name + query, body, "application/octet-stream"));
}

void add_load_options(const CommandLine& app, Options& o) {
  app.in(Topic::input)
      .add_option("--type", o.type, "type of its values and vectors")
      ->check(one_of({"f64", "f32"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option(
          "--coordinates", o.coordinates,
          "path in the library of a file with the coordinates of the nodes, as solve --coordinates reads it: multigrid "
          "then keeps rigid-body modes. Needs --solvable")
      ->type_name("FILE")
      ->common();
  app.in(Topic::computation)
      .add_option("--kernel", o.kernel,
                  "kernel of its products, one that gives a column the same bits whatever it is merged with")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--exchange", o.exchange, "how x moves between the ranks; see shardmat help multiply")
      ->capture_default_str()
      ->common();
  app.in(Topic::computation)
      .add_option("--sort", o.sort,
                  "order of the rows of a part. local: by descending length. none: as stored. auto: as the file says")
      ->check(one_of({"auto", "none", "local"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::machine).add_flag("--updatable", o.updatable, "keep memory for new values (put-values)")->common();
  app.in(Topic::machine)
      .add_flag("--solvable", o.solvable, "keep the rows in host memory, of which solvers are made (solve)")
      ->common();
  app.in(Topic::machine)
      .add_flag("--pinned", o.pinned, "keep the matrix when the service needs memory for other matrices")
      ->common();
}

}  // namespace

std::string text_of_matrix(const json& matrix) {
  const std::string state = matrix["state"];
  std::string text = fmt::format("{:<16} {:<8} {} {}", matrix["name"].get<std::string>(), state,
                                 matrix["type"].get<std::string>(), matrix["source"].get<std::string>());
  if (state == "ready")
    text += fmt::format(", {} × {}, {}", human_count(matrix["rows"]), human_count(matrix["cols"]),
                        human_count(matrix["nnz"], "nonzero"));
  if (matrix.contains("reason")) {
    const std::string reason = matrix["reason"], file = matrix["source"].get<std::string>() + ": ";  // named already
    text += ": " + (reason.starts_with(file) ? reason.substr(file.size()) : reason);
  }
  return text + "\n";
}

void warn_unsaved(const json& answer) {
  if (answer.contains("warning"))
    std::fputs(fmt::format("WARNING: {}\n", answer["warning"].get<std::string>()).c_str(), stderr);
}

std::vector<ClientCommand> add_client_load(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const CommandLine app =
      add_client_command(client, "load", "Load a matrix from the service's library and wait for it", o, load, commands);
  app.add_option("name", o->name, "name of the matrix in the service")->required()->check(name_in_service());
  app.add_option("source", o->source, "path of the matrix file in the library")->required();
  add_load_options(app, *o);
  const CommandLine arrays = add_client_command(
      client, "load-arrays", "Load a matrix of this machine, which is sent along and is no file of the library", o,
      load_arrays, commands);
  arrays.add_option("name", o->name, "name of the matrix in the service")->required()->check(name_in_service());
  arrays
      .add_option("arrays", o->arrays,
                  "matrix file, as scipy.sparse.save_npz writes it; or three .npy files: indptr, indices and data of CSR")
      ->required();
  arrays.in(Topic::input)
      .add_option("--cols", o->cols, "columns of a matrix of three files (default: as many as rows)")
      ->check(whole_number(1, std::int64_t{1} << 48))
      ->common();
  add_load_options(arrays, *o);
  return commands;
}

}  // namespace shardmat::tools
