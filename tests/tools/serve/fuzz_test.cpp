// Requests as nobody should send them: headers, paths, queries and JSON, given mutations. Each is taken or refused, and what
// proxies could read differently is not taken. Requests that are taken go as far as they can without ranks.
#include <gtest/gtest.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <variant>

#include "kernels/base/error.h"
#include "partition/batched/batch_body.h"
#include "tests/support/mutations.h"
#include "tools/serve/gate/tokens.h"
#include "tools/serve/handlers/api.h"
#include "tools/serve/handlers/batch_query.h"
#include "tools/serve/handlers/infer_request.h"
#include "tools/serve/handlers/job_query.h"
#include "tools/serve/handlers/vector_json.h"
#include "tools/serve/http/head_parser.h"
#include "tools/serve/http/header_scan.h"
#include "tools/serve/http/names.h"
#include "tools/serve/observe/access_log.h"
#include "tools/serve/observe/events.h"
#include "tools/serve/observe/live.h"
#include "tools/serve/observe/metrics.h"
#include "tools/serve/observe/service_json.h"
#include "tools/serve/ranks/jobs.h"
#include "tools/serve/state/library_files.h"

namespace shardmat::serve {
namespace {

constexpr int kUsual = 2500;

const std::string kHost = "Host: localhost\r\n";
const std::vector<std::string> kHeaders{
    "GET /v2/health/live HTTP/1.1\r\n" + kHost + "\r\n",
    "POST /v1/matrices/bar/multiply?k=2&alpha=-1e3&beta=0.5&x=vec-1&type=f64&priority=low HTTP/1.1\r\n" + kHost +
        "Content-Length: 15600\r\nContent-Type: application/octet-stream\r\nShardmat-Deadline-Ms: 250\r\n\r\n",
    "PUT /v1/matrices/bar/values?type=f32 HTTP/1.1\r\nContent-Length: 8\r\n" + kHost + "If-Match: \"12\"\r\n\r\n",
    "POST /v1/matrices/b%2er/load?wait=1 HTTP/1.1\r\n" + kHost + "Content-Length: 21\r\nConnection: keep-alive\r\n" +
        "X-Request-Id: a-b.c\r\nOrigin: https://lab.example.org\r\n\r\n",
    "POST /v2/models/bar/versions/1/infer HTTP/1.1\r\n" + kHost + "Inference-Header-Content-Length: 90\r\n" +
        "Content-Length: 7890\r\nExpect: 100-continue\r\n" +
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
    "POST /v1/matrices/bar/solve?method=cg&preconditioner=multigrid&rtol=1e-9&k=3&x0=job-7&wait=1 HTTP/1.1\r\n" + kHost +
        "Content-Length: 15600\r\nShardmat-Priority: high\r\n\r\n",
    "POST /v1/matrices/bar/pagerank?damping=0.9&unweighted=1&b_at=64&limit=5&keep=1 HTTP/1.1\r\n" + kHost + "\r\n",
    "POST /v1/batches?count=2&rows=5&cols=6&nnz=9&k=3&type=f32&alone=1 HTTP/1.1\r\n" + kHost + "Content-Length: 268\r\n\r\n",
    "PUT /v1/library/bar.h5?sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad HTTP/1.1\r\n" + kHost +
        "Content-Length: 30\r\n\r\n",
    "DELETE /v1/vectors/vec-7 HTTP/1.0\r\nAuthorization: Bearer 0123\r\nTransfer-Encoding: chunked\r\n\r\n"};

/// Where the header ends, or 0: taken in pieces, as it might arrive. `fault` says whether something was wrong with it.
std::size_t scanned_in_pieces(const std::string& bytes, bool& fault) {
  HeaderScanner scanner;
  std::minstd_rand random(static_cast<unsigned>(bytes.size()));
  for (std::size_t size = 0; size < bytes.size();) {
    size = std::min(bytes.size(), size + 1 + random() % 40);
    const auto found = scanner.scan(std::string_view(bytes).substr(0, size));
    fault = !found.fault.empty();
    if (fault || found.bytes > 0) return found.bytes;
  }
  return 0;
}

/// The front end without ranks.
class RequestFuzzTest : public test::MutationTest {
 protected:
  RequestFuzzTest()
      : state_(directory_ / "state"),
        arena_(service::Arena::create(1 << 20)),
        service_(loop_, {}, state_, arena_),
        metrics_(service_),
        events_(loop_, service_),
        gate_({}, {}),
        api_({service_, metrics_, events_, jobs_, loop_, gate_, live_, library_, directory_ / "state"}) {}

  /// Whatever becomes of the request, it is answered, and the answer can be logged.
  void ask(RequestHead head, const std::string& body) {
    head.content_length = std::min<std::uint64_t>(head.content_length, body.size());
    auto accepted = api_.route(head);
    Reply reply;
    if (auto* job = std::get_if<std::unique_ptr<Job>>(&accepted)) {
      bool done = false;
      for (std::size_t at = 0; at < body.size();) {
        const auto to = (*job)->body();
        std::copy_n(std::as_bytes(std::span(body)).begin() + static_cast<std::ptrdiff_t>(at),
                    std::min(to.size(), body.size() - at), to.begin());
        at += to.size();
        if ((*job)->rest() == 0) break;
        (*job)->take_piece([](const auto& problem) { EXPECT_FALSE(problem); });
      }
      (*job)->start([&](Reply answer) { reply = std::move(answer), done = true; });
      if (!done && head.target == "/v1/library") return;  // taken; another thread looks at the files
      EXPECT_TRUE(done) << head.target;
    } else {
      reply = std::move(std::get<Reply>(accepted));
    }
    finish_problem(reply, "id");
    EXPECT_GE(reply.status, 200);
    EXPECT_LT(reply.status, 600);
    EXPECT_NE(reply.status, 500) << head.target;
    const std::string code = reply.problem ? reply.problem->code : "";
    const std::string line = access_line({head, reply.status, code, 0, 0, 0, reply.times, false}, 0);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
  }

  StateDirectory state_;
  service::Arena arena_;
  EventLoop loop_;
  Service service_;
  Metrics metrics_;
  Events events_;
  Jobs jobs_{loop_, service_};
  Live live_{loop_, service_, jobs_};
  Gate gate_;
  const LibraryFiles library_{directory_, state_.id()};
  Api api_;
};

TEST_F(RequestFuzzTest, Headers) {
  mutate_text(
      "header", kHeaders,
      [&](const std::string& bytes) {
        const auto whole = HeaderScanner().scan(bytes);
        bool fault = false;
        const std::size_t in_pieces = scanned_in_pieces(bytes, fault);
        EXPECT_EQ(fault, !whole.fault.empty()) << bytes;
        EXPECT_EQ(in_pieces, whole.bytes) << bytes;
        if (!whole.fault.empty() || whole.bytes == 0) throw Error(ErrorKind::input, whole.fault);
        const ParsedHead parsed = parse_head(std::string_view(bytes).substr(0, whole.bytes));
        if (parsed.problem) throw Error(ErrorKind::input, parsed.problem->text);
        EXPECT_LE(parsed.head.fields.size(), kMostFields);
        for (const auto& [name, value] : parsed.head.fields)
          EXPECT_NE(strcasecmp(name.c_str(), "Transfer-Encoding"), 0) << bytes;
        EXPECT_TRUE(parsed.head.request_id.empty() || is_request_id(parsed.head.request_id));
        const std::string& length = parsed.head.field("Content-Length");
        EXPECT_EQ(length.empty() ? 0 : std::stoull(length), parsed.head.content_length) << bytes;
        ask(parsed.head, R"({"source": "bar.h5"})");
      },
      kUsual);
}

TEST_F(RequestFuzzTest, Targets) {
  std::vector<std::string> seeds;
  for (const Route& route : api_.routes().all()) seeds.push_back(route.method + " " + route.path + "?k=1&wait=1&x=vec-1");
  mutate_text(
      "target", seeds,
      [&](const std::string& bytes) {
        RequestHead head;
        const std::size_t space = bytes.find(' ');
        if (space == std::string::npos) throw Error(ErrorKind::input, "no target");
        head.method = bytes.substr(0, space), head.target = bytes.substr(space + 1), head.content_length = 2;
        ask(head, "{}");
      },
      kUsual);
}

/// Settings as the ranks name them.
const std::vector<std::string> kSettings{"solver",  "method", "preconditioner", "rtol",       "count",
                                         "damping", "which",  "tolerance",      "unweighted", "max_iterations"};

/// What is taken says the same when it is read again, and goes to the ranks as words of the form name=value.
void check_job(const JobQuery& query, const JobKind& kind) {
  std::map<std::string, std::string> again = query.given;
  for (const auto& [name, value] : query.given) {
    EXPECT_EQ(value.find_first_of(" ,="), std::string::npos) << value;
    EXPECT_NE(std::find(kSettings.begin(), kSettings.end(), name), kSettings.end()) << name;
  }
  const auto read = read_job_query(kind, again, kSettings);
  ASSERT_TRUE(std::holds_alternative<JobQuery>(read)) << query.settings;
  EXPECT_EQ(std::get<JobQuery>(read).settings, query.settings);
  EXPECT_GE(query.wait_seconds, 0);
  EXPECT_GT(query.limit_seconds, 0);
  EXPECT_TRUE(!query.columns || (*query.columns >= 1 && *query.columns <= 256));
  if (kind.columns == nullptr) return;
  const auto columns = kind.columns(query, 100);
  EXPECT_TRUE(std::holds_alternative<Problem>(columns) || (std::get<1>(columns) >= 1 && std::get<1>(columns) <= 256))
      << query.settings;
}

/// Takes the pairs for every kind of job; throws if none takes them.
void read_job(const std::map<std::string, std::string>& pairs) {
  std::string why;
  bool taken = false;
  for (const JobKind& kind : job_kinds()) {
    const auto read = read_job_query(kind, pairs, kSettings);
    if (const auto* problem = std::get_if<Problem>(&read)) {
      EXPECT_EQ(problem->status, 400);
      why = problem->text.substr(0, 500);
    } else {
      taken = true;
      check_job(std::get<JobQuery>(read), kind);
    }
  }
  if (!taken) throw Error(ErrorKind::input, why);
}

TEST_F(RequestFuzzTest, QueriesOfJobs) {
  const std::vector<std::string> seeds{
      "/v1/matrices/m/"
      "solve?method=cg&preconditioner=multigrid&rtol=1e-10&k=4&b=vec-1&x0=job-2&wait=2.5&limit=1e3&keep=1&alone=0",
      "/v1/matrices/m/solve?b_at=64&x0_at=4096&x_at=128&wait=1&type=f32&priority=low&max_iterations=100",
      "/v1/matrices/m/eigen?count=6&which=both&mass=M&method=lanczos&tolerance=1e-8&wait=60",
      "/v1/matrices/m/pagerank?damping=0.9&unweighted=1&tolerance=1e-12&k=2&b=vec-3&keep=1"};
  mutate_text(
      "query", seeds,
      [](const std::string& text) {
        const auto target = parse_target(text);
        if (!target) throw Error(ErrorKind::input, "no target");
        read_job(target->query);
      },
      kUsual);
}

TEST_F(RequestFuzzTest, BodiesOfJobs) {
  const std::vector<std::string> seeds{
      R"({"method": "cg", "preconditioner": "jacobi", "rtol": 1e-10, "b": "vec-3f", "x0": "job-07", "k": 2, "wait": 10})",
      R"({"count": 6, "which": "both", "mass": "M", "method": "lanczos", "tolerance": 1e-8, "limit": 60.5})",
      R"({"damping": 0.85, "unweighted": true, "b_at": 128, "keep": false, "priority": "high", "type": "f64"})", "{}"};
  mutate_text(
      "job", seeds, [](const std::string& text) { read_job(pairs_of_json(text)); }, kUsual);
}

/// Two matrices, [1 2; 0 3] and [4], and x.
std::string batch_bytes(ValueType type) {
  std::string bytes;
  const auto put = [&](const auto& items) {
    const auto raw = std::as_bytes(std::span(items));
    bytes.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  };
  put(std::vector<std::int64_t>{0, 2, 3}), put(std::vector<std::int64_t>{0, 2, 3}),
      put(std::vector<std::int64_t>{0, 2, 3, 4});
  const std::vector<double> values{1, 2, 3, 4}, x{5, 6, 7};
  if (type == ValueType::f64) put(values), put(x);
  else put(std::vector<float>(values.begin(), values.end())), put(std::vector<float>(x.begin(), x.end()));
  put(std::vector<std::int32_t>{0, 1, 1, 0});
  return bytes;
}

/// The queries of batches, and the arithmetic of their sizes.
TEST_F(RequestFuzzTest, QueriesOfBatches) {
  const std::vector<std::string> seeds{"/v1/batches?count=2&rows=3&cols=3&nnz=4&k=1&type=f64&alone=1&priority=low",
                                       "/v1/batches?count=2147479551&rows=2147479551&cols=2147479551&nnz=2147479551&k=4096",
                                       "/v1/batches?count=2&rows=3&cols=3&nnz=4&type=f32"};
  mutate_text(
      "batch", seeds,
      [](const std::string& text) {
        const auto target = parse_target(text);
        if (!target) throw Error(ErrorKind::input, "no target");
        RequestHead head;
        head.content_length = batch_bytes(ValueType::f64).size();
        const auto read = read_batch_query(head, *target);
        if (const auto* problem = std::get_if<Problem>(&read)) {
          EXPECT_TRUE(problem->status == 400 || problem->status == 422) << problem->text;
          throw Error(ErrorKind::input, problem->text.substr(0, 900));
        }
        EXPECT_EQ(std::get<BatchQuery>(read).shape.bytes(), head.content_length);
        EXPECT_LE(std::get<BatchQuery>(read).shape.y_bytes(), std::uint64_t{1} << 47);
      },
      kUsual);
}

/// The bodies of batches as a rank reads them: what is taken can be multiplied.
TEST_F(RequestFuzzTest, BodiesOfBatches) {
  for (const ValueType type : {ValueType::f64, ValueType::f32}) {
    const BatchShape shape{2, 3, 3, 4, 1, type};
    ASSERT_EQ(batch_bytes(type).size(), shape.bytes());
    mutate_text(
        "batch", {batch_bytes(type)},
        [&](std::string bytes) {
          bytes.resize(shape.bytes(), '\0');  // as the front end has made sure
          HostVector<std::int64_t> memory(bytes.size() / 8 + 1);
          std::memcpy(memory.data(), bytes.data(), bytes.size());
          const BatchBody body(shape, std::as_bytes(std::span(memory)).first(bytes.size()));
          if (const std::string fault = body.fault_of_offsets(); !fault.empty()) throw Error(ErrorKind::input, fault);
          EXPECT_EQ(body.weight(0) + body.weight(1), body.weight());
          for (const auto& [begin, end] : {std::pair(0, 2), {0, 1}, {1, 2}}) {
            HostVector<double> values;
            const BatchView batch = body.view(begin, end, values);
            validate(batch, "the batch", begin);
            double sum = 0;  // of y, as the kernels read it
            for (std::int64_t m = 0; m < batch.count(); ++m)
              for (std::int64_t i = 0; i < batch.rows_of(m); ++i) {
                const auto row =
                    static_cast<std::size_t>(batch.first_row[static_cast<std::size_t>(m)] - batch.first_row[0] + i);
                for (std::int64_t k = batch.row_ptr[row] - batch.row_ptr[0]; k < batch.row_ptr[row + 1] - batch.row_ptr[0];
                     ++k)
                  sum += batch.values[static_cast<std::size_t>(k)] *
                         static_cast<double>(body.x()[static_cast<std::size_t>(
                             shape.entry() * static_cast<std::uint64_t>(batch.first_col[static_cast<std::size_t>(m)] +
                                                                        batch.col_idx[static_cast<std::size_t>(k)]))]);
              }
            EXPECT_FALSE(std::isnan(sum));  // finite values, and x as small whole numbers
          }
        },
        kUsual);
  }
}

TEST_F(RequestFuzzTest, BodiesOfJson) {
  const std::vector<std::string> seeds{
      R"({"source": "a/bar.h5", "type": "f32", "updatable": true, "pinned": false})",
      R"({"matrix": "bar", "layout": "rows", "columns": 4})",
      R"({"n": 1000, "type": "f64", "columns": 256})",
      R"({"id": "i", "inputs": [{"name": "x", "shape": [2, 3], "datatype": "FP64", "data": [[1, 2.5, -3e4], [0, 1, 2]]}],
"outputs": [{"name": "y", "parameters": {"binary_data": true}}], "parameters": {"alpha": 2, "timeout": 1e6, "priority": 1}})",
      R"({"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}]})",
      R"({"tokens": [{"name": "lab", "scopes": ["read", "multiply"], "matrices": ["fem-*"], "weight": 2, "priority": "high",
"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "requests_per_second": 100}]})"};
  const std::vector<std::function<void(const std::string&)>> readers{
      [](const std::string& text) { parse_load("bar", text); },
      [](const std::string& text) { EXPECT_LE(parse_vector(text).columns, 256); },
      [](const std::string& text) { EXPECT_GE(parse_infer(text).columns(), 1); },
      [](const std::string& text) { parse_pin(text); }, [](const std::string& text) { TokenTable::parse(text); }};
  mutate_text(
      "body", seeds,
      [&](const std::string& text) {
        bool taken = false;
        for (const auto& read : readers) try {
            read(text);
            taken = true;
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input) << text;
            EXPECT_LT(std::strlen(error.what()), 1000U) << text;
          }
        if (!taken) throw Error(ErrorKind::input, "no body of any request");
      },
      2 * kUsual);
}

}  // namespace
}  // namespace shardmat::serve
