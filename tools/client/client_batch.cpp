#include "tools/client/client_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/types.h"
#include "partition/batched/batch_shape.h"
#include "partition/batched/batch_source.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"
#include "tools/cli/value_checks.h"

namespace shardmat::tools {
namespace {

struct Options : ServiceAddress {
  std::string batch, x, y, type = "f64";
  std::int64_t rhs = 1;
  bool alone = false, force = false;
};

template <class T>
void put(HostVector<std::byte>& body, std::uint64_t offset, std::span<const T> items) {
  if (!items.empty()) std::memcpy(body.data() + offset, items.data(), items.size_bytes());
}

template <class T>
void put_numbers(HostVector<std::byte>& body, std::uint64_t offset, std::span<const double> numbers) {
  HostVector<T> items(numbers.size());
  std::transform(numbers.begin(), numbers.end(), items.begin(), [](double number) { return static_cast<T>(number); });
  put<T>(body, offset, items);
}

BatchShape shape_of(const BatchSource& source, const Options& o) {
  BatchShape shape{source.count(), source.rows(), source.cols(), source.nnz(), o.rhs, parse_value_type(o.type)};
  for (const std::int64_t size : {shape.count, shape.rows, shape.cols, shape.nnz})
    if (size > BatchShape::kMost)
      throw Error(ErrorKind::input, fmt::format("{} is too large for one request: at most {} matrices, rows, columns and "
                                                "nonzeros; send parts of it",
                                                source.name(), BatchShape::kMost));
  if (shape.rows == 0 || shape.cols == 0)
    throw Error(ErrorKind::input, fmt::format("{} has no rows or no columns: there is nothing to multiply", source.name()));
  return shape;
}

HostVector<std::byte> body_of(const BatchSource& source, const BatchShape& shape, const Options& o) {
  const VectorFile file(o.x, "x", o.rhs);
  if (file.size() != shape.cols)
    throw Error(ErrorKind::input,
                fmt::format("{}: x has {} rows, but {} has {} columns", o.x, file.size(), source.name(), shape.cols));
  const HostVector<double> x = file.read(0, shape.cols);
  require_in_range(shape.type, x, o.x);
  const HostBatch batch = source.read(0, shape.count);
  require_in_range(shape.type, batch.values, source.name());
  HostVector<std::byte> body(shape.bytes());
  put<std::int64_t>(body, 0, batch.first_row);
  put<std::int64_t>(body, shape.first_col(), batch.first_col);
  put<std::int64_t>(body, shape.row_ptr(), batch.row_ptr);
  put<std::int32_t>(body, shape.column_indices(), batch.col_idx);
  const auto put_all = [&]<class T>(T) {
    put_numbers<T>(body, shape.values(), batch.values);
    put_numbers<T>(body, shape.x(), x);
  };
  shape.type == ValueType::f32 ? put_all(float()) : put_all(double());
  return body;
}

template <class T>
void write_y(const Options& o, const BatchShape& shape, const HttpReply& reply) {
  if (reply.body.size() != shape.y_bytes())
    throw Error(ErrorKind::internal, "the service answered with a y of another size");
  const auto* values = reinterpret_cast<const T*>(reply.body.data());
  HostVector<double> rows(values, values + shape.rows * shape.columns);
  VectorWriter writer(o.y, "y", shape.rows, sizeof(T) == sizeof(float), shape.columns);
  writer.append(rows.data(), shape.rows);
  writer.finish();
}

int batch(const Options& o) {
  require_spared({{o.batch, "the batch"}, {o.x, "x"}}, {o.y});
  check_vector_suffix(o.y);
  check_vector_writable(o.y, o.rhs);
  if (!o.force) require_replaceable(o.y, Output::vector, "y");
  const auto source = open_batch(o.batch);
  const BatchShape shape = shape_of(*source, o);
  const HostVector<std::byte> body = body_of(*source, shape, o);
  HttpClient client = connect(o);
  const std::string query = fmt::format("/v1/batches?count={}&rows={}&cols={}&nnz={}&k={}&type={}{}", shape.count,
                                        shape.rows, shape.cols, shape.nnz, shape.columns, o.type, o.alone ? "&alone=1" : "");
  const HttpReply reply = ask(client, "POST", query, body, "application/octet-stream");
  shape.type == ValueType::f32 ? write_y<float>(o, shape, reply) : write_y<double>(o, shape, reply);
  fmt::print("{} matrices, multiplied with those of {} other requests\n", shape.count,
             std::stoll(reply.fields.at("shardmat-merged")) - 1);
  return 0;
}

}  // namespace

std::vector<ClientCommand> add_client_batch(const CommandLine& client) {
  const auto o = std::make_shared<Options>();
  std::vector<ClientCommand> commands;
  const CommandLine app =
      add_client_command(client, "batch", "Multiply many small matrices by x, from files to a file", o, batch, commands);
  app.add_option("batch", o->batch, "batch file, or another source; see shardmat help batch")->required();
  app.add_option("x", o->x, "file with x (" + vector_suffixes() + "): the rows for one matrix after those for another")
      ->required();
  app.add_option("y", o->y, "file for y (" + vector_suffixes() + ")")->required()->check(output_name());
  app.in(Topic::input)
      .add_option("--rhs", o->rhs, "columns of x and y")
      ->check(whole_number(1, BatchShape::kMostColumns))
      ->capture_default_str()
      ->common();
  app.in(Topic::input)
      .add_option("--type", o->type, "type of values, x and y")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str()
      ->common();
  app.in(Topic::computation).add_flag("--alone", o->alone, "is not multiplied together with batches of others");
  app.in(Topic::output)
      .add_flag("--force", o->force, "replace the output file even if it is of another kind, or has other datasets");
  return commands;
}

}  // namespace shardmat::tools
