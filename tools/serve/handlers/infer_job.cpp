#include "tools/serve/handlers/infer_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/error.h"
#include "tools/serve/handlers/infer_request.h"
#include "tools/serve/handlers/product_job.h"
#include "tools/serve/handlers/request_space.h"
#include "tools/serve/ranks/generation.h"

namespace shardmat::serve {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";

/// How the body of a request is divided.
struct BodyParts {
  std::uint64_t json = 0;  ///< bytes of JSON, which come first
  bool is_raw = false;     ///< there is no JSON: the body is x, and the answer is binary
};

/// Writes numbers of a type to memory. Throws Error(input) for one that the type does not have.
template <class T>
void write_numbers(const std::vector<double>& numbers, std::byte* to) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T value = static_cast<T>(numbers[i]);
    if (!std::isfinite(value)) throw Error(ErrorKind::input, "a number of x is too large for FP32");
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

/// "1.0, 2.5": the numbers as JSON; nothing if one is NaN or infinite, for which JSON has no number.
template <class T>
std::optional<std::string> numbers_of(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 3);
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    if (!std::isfinite(value)) return std::nullopt;
    char digits[32];
    const std::string_view number(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    if (i > 0) text += ',';
    text += number;
    if (number.find_first_of(".e") == std::string_view::npos) text += ".0";
  }
  return text;
}

/// Texts and vectors above this are read and written on another thread.
constexpr std::uint64_t kMostAtOnce = 64 << 10;
constexpr std::uint64_t kMostJsonBytes = 1 << 20;                   ///< of a request
constexpr std::uint64_t kMostJsonNumbers = std::uint64_t{1} << 22;  ///< of an answer

using ReadRequest = std::variant<InferRequest, Problem>;

ReadRequest read_json(std::string_view text) {
  try {
    return parse_infer(text);
  } catch (const Error& error) {
    return make_problem(400, "malformed", error.what());
  } catch (const std::bad_alloc&) {
    return make_problem(507, "no_memory", "the service is short of memory; try again later");
  }
}

class InferJob final : public ProductJob {
 public:
  /// `product` was let in, and its x has room for the request's body. REQUIRES: the matrix is ready.
  InferJob(Service& service, const Matrix& matrix, BodyParts parts, std::uint64_t bytes,
           std::shared_ptr<MultiplyRequest> product, std::shared_ptr<const Rights> rights)
      : ProductJob(service, std::move(product), bytes),
        rights_(std::move(rights)),
        name_(matrix.wanted.name),
        type_(matrix.wanted.type),
        parts_(parts) {}

  void start(std::function<void(Reply)> done) override {
    if (parts_.is_raw) return multiply(raw_request(), done);
    const std::string_view text{reinterpret_cast<const char*>(body_.whole().data()), parts_.json};
    if (text.size() <= kMostAtOnce) return multiply(read_json(text), done);
    const auto read = std::make_shared<ReadRequest>();
    service_.background().run([product = product_, text, read] { *read = read_json(text); },
                              [this, weak = std::weak_ptr(alive_), read, done] {
                                if (!weak.expired()) multiply(std::move(*read), done);
                              });
  }

 private:
  /// Asks for the product. `done` gets its answer.
  void multiply(ReadRequest read, const std::function<void(Reply)>& done) {
    auto* wrong = std::get_if<Problem>(&read);
    if (wrong != nullptr) return done(problem_reply(std::move(*wrong)));
    request_ = std::get<InferRequest>(std::move(read));
    if (auto problem = prepare()) return done(problem_reply(std::move(*problem)));
    put_in_line(*service_.find(name_), [this, done](const MultiplyResult& result) {
      if (result.problem) return done(problem_reply(*result.problem));
      answer(result, done);
    });
  }

  /// Makes the request for a product.
  std::optional<Problem> prepare() {
    const auto usable = usable_matrix(service_, name_);
    if (const auto* problem = std::get_if<Problem>(&usable)) return *problem;
    const Matrix& matrix = *std::get<const Matrix*>(usable);
    const bool was_replaced = std::exchange(product_->matrix, matrix.id) != matrix.id;
    if (matrix.wanted.type != type_)
      return make_problem(409, "changed", fmt::format("{} has another type now; ask for it again", name_));
    const std::uint64_t entry = size_of(matrix.wanted.type);
    product_->x_bytes = static_cast<std::uint64_t>(matrix.shape().cols) * entry;
    product_->y_bytes = static_cast<std::uint64_t>(matrix.shape().rows) * entry;
    if (auto problem = check(matrix)) return problem;
    try {
      if (auto problem = place_x()) return problem;
    } catch (const Error& error) {
      return make_problem(400, "malformed", error.what());
    }
    product_->columns = request_.columns(), product_->alpha = request_.alpha;
    product_->deadline = now() + request_.timeout_seconds;
    if (request_.priority)
      if (auto problem = set_client(*product_, *rights_, request_.priority)) return problem;
    if (!parts_.is_raw || was_replaced)  // only the JSON says how many columns there are and how long they may wait
      if (auto problem = service_.dispatcher().admit(matrix, *product_)) return problem;
    auto room = take_room(service_, rights_, y_bytes());
    if (auto* problem = std::get_if<Problem>(&room)) return std::move(*problem);
    product_->y = std::get<Room>(std::move(room));
    return std::nullopt;
  }

  std::uint64_t y_bytes() const { return product_->y_bytes * static_cast<std::uint64_t>(product_->columns); }

  /// The request that a body without JSON stands for.
  ReadRequest raw_request() const {
    const auto usable = usable_matrix(service_, name_);
    if (const auto* problem = std::get_if<Problem>(&usable)) return *problem;
    const Matrix& matrix = *std::get<const Matrix*>(usable);
    const std::int64_t n = matrix.shape().cols;
    const std::uint64_t bytes = body_.whole().size(), column = static_cast<std::uint64_t>(n) * size_of(matrix.wanted.type);
    const std::uint64_t columns = column > 0 ? bytes / column : 1;
    InferRequest request;
    request.type = matrix.wanted.type, request.binary_output = true, request.binary_bytes = bytes;
    request.shape = columns > 1 ? std::vector<std::int64_t>{static_cast<std::int64_t>(columns), n} : std::vector{n};
    return request;
  }

  std::optional<Problem> check(const Matrix& matrix) const {
    const std::int64_t n = matrix.shape().cols;
    if (request_.type != matrix.wanted.type)
      return make_problem(422, "wrong_type",
                          fmt::format("x of {} has the datatype {}", name_, datatype_name(matrix.wanted.type)));
    if (request_.shape.back() != n)
      return make_problem(422, "wrong_length", fmt::format("the shape of x of {} is [{}] or [k, {}]", name_, n, n));
    if (request_.columns() > service::kMostColumns)
      return make_problem(422, "too_many_columns",
                          fmt::format("k is at most {}; send several requests", service::kMostColumns));
    const std::uint64_t bytes = product_->x_bytes * static_cast<std::uint64_t>(request_.columns());
    const std::uint64_t given =
        request_.binary_bytes ? *request_.binary_bytes : request_.data.size() * size_of(request_.type);
    if (given != bytes || (request_.binary_bytes && body_.whole().size() - parts_.json != given))
      return make_problem(422, "wrong_length",
                          fmt::format("x of this shape has {} bytes; the request says {}, and {} bytes came behind the JSON",
                                      bytes, given, body_.whole().size() - parts_.json));
    const auto numbers = static_cast<std::uint64_t>(matrix.shape().rows) * static_cast<std::uint64_t>(request_.columns());
    if (!request_.binary_output && numbers > kMostJsonNumbers)
      return make_problem(422, "too_long",
                          fmt::format("y has {} numbers, and JSON takes {} at most; ask for binary data: \"outputs\": "
                                      "[{{\"name\": \"y\", \"parameters\": {{\"binary_data\": true}}}}]",
                                      numbers, kMostJsonNumbers));
    return std::nullopt;
  }

  /// Brings x to where the ranks expect it.
  std::optional<Problem> place_x() {
    if (request_.binary_bytes) {
      std::memmove(body_.whole().data(), body_.whole().data() + parts_.json, *request_.binary_bytes);
      return std::nullopt;
    }
    const std::uint64_t bytes = request_.data.size() * size_of(request_.type);
    auto taken = take_room(service_, rights_, bytes);
    if (auto* problem = std::get_if<Problem>(&taken)) return std::move(*problem);
    Room room = std::get<Room>(std::move(taken));
    std::byte* to = service_.arena().at(room->offset(), bytes).data();
    request_.type == ValueType::f32 ? write_numbers<float>(request_.data, to) : write_numbers<double>(request_.data, to);
    product_->x = std::move(room);
    request_.data = {};
    return std::nullopt;
  }

  /// Writes the answer, on another thread if it is long JSON.
  void answer(const MultiplyResult& result, const std::function<void(Reply)>& done) {
    if (request_.binary_output) return done(reply_of(result, ""));
    const std::span<const std::byte> y = service_.arena().at(product_->y->offset(), y_bytes());
    const auto write = [type = request_.type, y] {
      return type == ValueType::f32 ? numbers_of<float>(y) : numbers_of<double>(y);
    };
    if (y.size() <= kMostAtOnce) return done(unless_out_of_memory([&] { return json_reply_of(result, write()); }));
    const auto text = std::make_shared<std::optional<std::optional<std::string>>>();  // none: no memory for it
    const auto work = [product = product_, write, text] {
      try {
        *text = write();
      } catch (const std::bad_alloc&) {
        text->reset();
      }
    };
    service_.background().run(work, [this, weak = std::weak_ptr(alive_), result, text, done] {
      if (weak.expired()) return;
      done(unless_out_of_memory([&] { return *text ? json_reply_of(result, **text) : throw std::bad_alloc(); }));
    });
  }

  /// What `make` returns; a refusal if there is no memory for it.
  static Reply unless_out_of_memory(const std::function<Reply()>& make) {
    try {
      return make();
    } catch (const std::bad_alloc&) {
      return problem_reply(507, "no_memory", "the service is short of memory; ask for binary data, or try again later");
    }
  }

  Reply json_reply_of(const MultiplyResult& result, const std::optional<std::string>& numbers) const {
    if (numbers) return reply_of(result, *numbers);
    return problem_reply(422, "not_finite",
                         "y has NaN or infinity, which JSON cannot hold. Ask for binary data: add \"parameters\": "
                         "{\"binary_data_output\": true} "
                         "to the request, or \"outputs\": [{\"name\": \"y\", \"parameters\": {\"binary_data\": true}}]");
  }

  Reply reply_of(const MultiplyResult& result, const std::string& numbers) const {
    std::vector<std::int64_t> shape = request_.shape;
    shape.back() = static_cast<std::int64_t>(product_->y_bytes / size_of(request_.type));
    json tensor{{"name", "y"}, {"datatype", datatype_name(request_.type)}, {"shape", shape}};
    if (request_.binary_output) tensor["parameters"] = {{"binary_data_size", y_bytes()}};
    else tensor["data"] = json::array();
    json answer{{"model_name", name_}, {"model_version", "1"}};
    if (!request_.id.empty()) answer["id"] = request_.id;
    answer["outputs"] = json::array({tensor});
    Reply reply;
    reply.times = times_of(result, product_->columns);
    reply.fields = {generation_field(result.generation)};
    reply.text = answer.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!request_.binary_output) {
      constexpr std::string_view kEnd = "]}]}";  // the numbers come before it
      reply.text.insert(reply.text.size() - kEnd.size(), numbers);
      return reply;
    }
    reply.content_type = "application/octet-stream";
    reply.fields.emplace_back(kHeaderLength, std::to_string(reply.text.size()));
    reply.bytes = service_.arena().at(product_->y->offset(), y_bytes());
    reply.owner = product_;
    return reply;
  }

  std::shared_ptr<const Rights> rights_;
  std::string name_;
  ValueType type_;
  BodyParts parts_;
  InferRequest request_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

std::variant<BodyParts, Problem> parts_of(const RequestHead& head) {
  const std::string& field = head.field(kHeaderLength);
  if (field.empty()) return BodyParts{head.content_length, false};
  const auto length = parse_whole(field);
  if (!length || *length < 0 || static_cast<std::uint64_t>(*length) > head.content_length)
    return make_problem(400, "malformed", fmt::format("{} must be a number of bytes of the body", kHeaderLength));
  return BodyParts{static_cast<std::uint64_t>(*length), *length == 0};
}

}  // namespace

Accepted accept_infer(Service& service, const Call& call) {
  const auto usable = usable_matrix(service, call.matrix);
  if (const auto* problem = std::get_if<Problem>(&usable)) return problem_reply(*problem);
  const Matrix& matrix = *std::get<const Matrix*>(usable);
  auto parts = parts_of(call.head);
  if (auto* problem = std::get_if<Problem>(&parts)) return problem_reply(std::move(*problem));
  const auto [json_bytes, is_raw] = std::get<BodyParts>(parts);
  const std::uint64_t bytes = call.head.content_length;
  if (json_bytes > kMostJsonBytes)
    return problem_reply(413, "too_long",
                         fmt::format("the JSON has more than {} bytes; send x as binary data", kMostJsonBytes));
  const std::uint64_t column = static_cast<std::uint64_t>(matrix.shape().cols) * size_of(matrix.wanted.type);
  const std::uint64_t most = column * static_cast<std::uint64_t>(service::kMostColumns);
  if (bytes - json_bytes > most)
    return problem_reply(
        413, "too_long",
        fmt::format("the body has {} bytes of x; {} takes {} at most", bytes - json_bytes, call.matrix, most));
  if (bytes + 128 > service.space().bytes())
    return problem_reply(
        413, "arena_too_small",
        fmt::format("the body has {} bytes; the service has {} for all requests", bytes, service.space().bytes()));
  auto product = std::make_shared<MultiplyRequest>();
  product->matrix = matrix.id;
  product->columns = std::max<std::int64_t>(1, static_cast<std::int64_t>(column > 0 ? (bytes - json_bytes) / column : 0));
  const auto priority = wanted_priority(call.head);
  if (const auto* problem = std::get_if<Problem>(&priority)) return problem_reply(*problem);
  if (auto problem = set_client(*product, call.rights(), std::get<0>(priority))) return problem_reply(std::move(*problem));
  if (auto problem = service.dispatcher().admit(matrix, *product)) return problem_reply(std::move(*problem));
  if (auto problem = check_token_memory(call.rights(), bytes)) return problem_reply(std::move(*problem));
  auto room = reserve_room(service, call.head.rights, bytes);
  if (auto* problem = std::get_if<Problem>(&room)) return problem_reply(std::move(*problem));
  product->x = std::get<Room>(std::move(room));
  return std::make_unique<InferJob>(service, matrix, std::get<BodyParts>(parts), bytes, std::move(product),
                                    call.head.rights);
}

}  // namespace shardmat::serve
