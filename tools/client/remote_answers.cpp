#include "tools/client/remote_answers.h"

#include <fmt/format.h>

#include <span>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "kernels/base/types.h"
#include "partition/readers/replaceable.h"
#include "partition/vectors/vector_file.h"
#include "tools/cli/checks.h"

namespace shardmat::tools {

WantedMatrix wanted_of(const CommandLine& app, const std::string& matrix, const LoadOptions& load) {
  WantedMatrix wanted;
  wanted.matrix = matrix;
  if (app.count("--type") > 0) wanted.type = std::string(name(load.type));
  wanted.kernel = load.plan.kernel, wanted.exchange = load.exchange;
  if (app.count("--sort") > 0) wanted.sort = load.sort == LocalSort::none ? "none" : "local";
  return wanted;
}

HostVector<char> columns_of(const VectorSource& source, const RemoteMatrix& matrix, std::int64_t n, std::int64_t first,
                            std::int64_t count) {
  const HostVector<double> rows = source.read(0, n);
  require_in_range(matrix.f32 ? ValueType::f32 : ValueType::f64, rows, source.name());
  HostVector<char> bytes;
  const auto append = [&](auto zero) {
    HostVector<decltype(zero)> values;
    append_columns<decltype(zero)>(rows, source.columns(), first, count, values);
    const char* begin = reinterpret_cast<const char*>(values.data());
    bytes.insert(bytes.end(), begin, begin + values.size() * sizeof zero);
  };
  matrix.f32 ? append(0.0F) : append(0.0);
  return bytes;
}

HostVector<double> rows_of_reply(const HttpReply& reply, const RemoteMatrix& matrix, std::int64_t rows,
                                 std::int64_t columns) {
  if (reply.body.size() != static_cast<std::size_t>(rows * columns) * (matrix.f32 ? sizeof(float) : sizeof(double)))
    throw Error(ErrorKind::internal,
                "the service answered with a vector of another size; its matrix may have been replaced");
  const auto bytes = std::as_bytes(std::span(reply.body));
  return matrix.f32 ? rows_of<float>(bytes, rows, columns) : rows_of<double>(bytes, rows, columns);
}

void check_output(const std::string& output, const char* what, std::int64_t columns, std::int64_t files, bool force) {
  if (output.empty()) return;
  check_vector_suffix(output);
  check_vector_writable(output, columns, files);
  if (!force) require_replaceable(output, Output::vector, what, files);
}

void write_output(const std::string& output, const char* what, const RemoteMatrix& matrix, const HostVector<double>& rows,
                  std::int64_t columns, std::int64_t files) {
  if (output.empty()) return;
  const std::int64_t count = std::ssize(rows) / columns;
  VectorWriter writer(output, what, count, matrix.f32, columns, files);
  writer.append(rows.data(), count);
  writer.finish();
}

void finish_job(HttpClient& client, const std::string& id, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}; the service keeps what it has found: shardmat client job {} FILE", error.what(), id),
                error.setting());
  }
  ask(client, "DELETE", "/v1/jobs/" + id);
}

std::string text_of(const RemoteMatrix& matrix, const std::string& where) {
  return fmt::format("Matrix {} in the service at {}\n  shape          {} × {}, {}, {}, on {}\n", matrix.source, where,
                     human_count(matrix.rows), human_count(matrix.cols), human_count(matrix.nnz, "nonzero"),
                     matrix.f32 ? "f32" : "f64", human_count(matrix.ranks, "rank"));
}

}  // namespace shardmat::tools
