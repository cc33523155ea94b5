#include "tools/bench/service/materials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "kernels/base/error.h"
#include "partition/shard/shard_file.h"
#include "partition/vectors/vector_file.h"
#include "tools/bench/service/load.h"
#include "tools/cli/input_matrix.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools::service_bench {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

double entry(const HostVector<std::byte>& vectors, std::size_t at, bool f32) {
  if (f32) {
    float value = 0;
    std::memcpy(&value, vectors.data() + at * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  std::memcpy(&value, vectors.data() + at * sizeof value, sizeof value);
  return value;
}

void set_entry(HostVector<std::byte>& vectors, std::size_t at, bool f32, double value) {
  const auto narrow = static_cast<float>(value);
  if (f32) std::memcpy(vectors.data() + at * sizeof narrow, &narrow, sizeof narrow);
  else std::memcpy(vectors.data() + at * sizeof value, &value, sizeof value);
}

std::vector<std::string> multiply_command(const MatrixFolder& library, const Resident& matrix, int ranks,
                                          std::initializer_list<std::string> more) {
  std::vector<std::string> command{"mpirun",
                                   "-n",
                                   std::to_string(ranks),
                                   (program_folder() / "shardmat").string(),
                                   "multiply",
                                   (library.path() / matrix.source).string(),
                                   "--backend",
                                   library.backend(),
                                   "--type",
                                   matrix.type};
  if (!library.on_gpus()) command.insert(command.end(), {"--no-cache", "--no-measure"});
  if (ranks > 1) command.insert(command.end(), {"--exchange", matrix.exchange});
  command.insert(command.end(), more);
  return command;
}

/// By `shardmat multiply`.
HostVector<std::byte> library_products(const MatrixFolder& library, const Resident& matrix, int ranks,
                                       const HostVector<std::byte>& x) {
  const bool f32 = matrix.type == "f32";
  const std::size_t n = static_cast<std::size_t>(matrix.cols), m = static_cast<std::size_t>(matrix.rows);
  const std::size_t columns = x.size() / matrix.x_bytes();
  HostVector<double> by_rows(n * columns);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < n; ++i) by_rows[i * columns + j] = entry(x, j * n + i, f32);
  const fs::path x_file = library.path() / "x.npy", y_file = library.path() / "y.npy";
  VectorWriter writer(x_file, "x", matrix.cols, f32, static_cast<std::int64_t>(columns));
  writer.append(by_rows.data(), matrix.cols);
  writer.finish();
  std::vector<std::string> command = multiply_command(
      library, matrix, ranks,
      {"--x", x_file.string(), "--rhs", std::to_string(columns), "--output", y_file.string(), "--iterations", "0"});
  if (ranks > 1 && columns > 1) command.push_back("--overlap");  // the sums of a product of one column
  run_to_end(command, library.path() / "multiply.log");
  const HostVector<double> y_rows = VectorFile(y_file, "y", static_cast<std::int64_t>(columns)).read(0, matrix.rows);
  HostVector<std::byte> y(matrix.y_bytes() * columns);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < m; ++i) set_entry(y, j * m + i, f32, y_rows[i * columns + j]);
  fs::remove(x_file), fs::remove(y_file);
  return y;
}

/// By the service, each alone.
HostVector<std::byte> single_products(Server& server, const Resident& matrix, const HostVector<std::byte>& x) {
  HostVector<std::byte> y(x.size() / matrix.x_bytes() * matrix.y_bytes());
  Connection connection(server.socket());
  for (std::size_t j = 0; j < x.size() / matrix.x_bytes(); ++j) {
    const Request request = multiply_request(matrix.name, std::span(x).subspan(j * matrix.x_bytes(), matrix.x_bytes()));
    const Reply reply = connection.ask(request);
    if (reply.status != 200) throw Error(ErrorKind::internal, fmt::format("a product was answered with {}", reply.text()));
    std::copy(reply.body.begin(), reply.body.end(), y.begin() + static_cast<std::ptrdiff_t>(j * matrix.y_bytes()));
  }
  return y;
}

}  // namespace

MatrixFolder::MatrixFolder(const fs::path& path, std::string backend) : path_(path), backend_(std::move(backend)) {
  fs::create_directory(path_);
}

std::string MatrixFolder::add(const std::string& matrix) {
  std::string& file = files_[matrix];
  if (!file.empty()) return file;
  const InputMatrix input = open_input(matrix, false, false);
  const std::string name = fmt::format("{}.h5", files_.size());
  WriteOptions options;
  options.how = "shardmat bench service";
  options.parts = {2};
  write_shard_file(path_ / name, *input.rows, options);
  return file = name;
}

Resident load_solvable(const Server& server, const std::string& source, const std::string& name) {
  Connection connection(server.socket());
  const std::string body = fmt::format(R"({{"source": "{}", "solvable": true}})", source);
  const Reply reply =
      connection.ask(make_request("POST", fmt::format("/v1/matrices/{}/load?wait=1", name), std::as_bytes(std::span(body))));
  if (reply.status != 200)
    throw Error(ErrorKind::resources, fmt::format("{} was not loaded: {} {}", source, reply.status, reply.text()));
  return Resident(reply.text());
}

HostVector<std::byte> random_vectors(const Resident& matrix, std::int64_t count, std::uint64_t seed) {
  const bool f32 = matrix.type == "f32";
  const std::size_t entries = static_cast<std::size_t>(matrix.cols * count);
  HostVector<std::byte> vectors(matrix.x_bytes() * static_cast<std::size_t>(count));
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
  for (std::size_t i = 0; i < entries; ++i)
    set_entry(vectors, i, f32, 2 * static_cast<double>(random()) / static_cast<double>(random.max()) - 1);
  return vectors;
}

Products make_products(Server& server, const Resident& matrix, std::size_t count, std::size_t checked) {
  Products products;
  products.x = random_vectors(matrix, static_cast<std::int64_t>(count), 1);
  Connection connection(server.socket());
  for (std::size_t i = 0; i < count; ++i) {
    Request request = multiply_request(matrix.name, std::span(products.x).subspan(i * matrix.x_bytes(), matrix.x_bytes()));
    if (i < checked) {
      const Reply reply = connection.ask(request);
      if (reply.status != 200) throw Error(ErrorKind::internal, fmt::format("a product was answered with {}", reply.text()));
      request.expected = products.y.emplace_back(reply.body.begin(), reply.body.end());
    }
    products.requests.push_back(std::move(request));
  }
  return products;
}

ResidentProducts make_resident_products(Server& server, const Resident& matrix, const Products& products) {
  ResidentProducts resident;
  Connection connection(server.socket());
  for (const Request& request : products.requests) {
    const std::string x = server.make_vector(matrix, false), y = server.make_vector(matrix, true);
    const Reply reply = connection.ask(numbers_request("PUT", "/v1/vectors/" + x, request.body));
    if (reply.status != 204) throw Error(ErrorKind::internal, fmt::format("a vector was answered with {}", reply.text()));
    resident.y.push_back(y);
    resident.requests.push_back(resident_request(matrix.name, x, y));
  }
  return resident;
}

bool are_right(Server& server, const ResidentProducts& resident, const Products& products) {
  Connection connection(server.socket());
  for (std::size_t i = 0; i < products.y.size(); ++i) {
    Request request = make_request("GET", "/v1/vectors/" + resident.y[i]);
    request.expected = products.y[i];
    const Reply reply = connection.ask(request);
    if (reply.status != 200 || !is_right(request, reply)) return false;
  }
  return true;
}

HostVector<std::byte> expected_products(const MatrixFolder& library, Server& server, const Resident& matrix,
                                        const HostVector<std::byte>& x) {
  return library.on_gpus() ? single_products(server, matrix, x) : library_products(library, matrix, server.ranks(), x);
}

double bare_product_seconds(const MatrixFolder& library, const Resident& matrix, int ranks, int products) {
  const fs::path report = library.path() / "multiply.json";
  run_to_end(multiply_command(library, matrix, ranks, {"--iterations", std::to_string(products), "--json", report.string()}),
             library.path() / "multiply.log");
  std::ifstream file(report);
  const double seconds = json::parse(file)["iteration"]["median_s"];
  fs::remove(report);
  return seconds;
}

}  // namespace shardmat::tools::service_bench
