#include "runtime/service/wire/command.h"

#include <cstring>
#include <type_traits>

namespace shardmat::service {
namespace {

/// The most columns or widths that a message may name.
constexpr std::uint64_t kMostItems = 1 << 16;

class Writer {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(const T& value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(T));
  }
  void operator()(const std::string& text) {
    (*this)(std::uint64_t{text.size()});
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), first, first + text.size());
  }
  template <class T>
  void operator()(const std::vector<T>& items) {
    (*this)(std::uint64_t{items.size()});
    for (const T& item : items) one(item);
  }

  std::vector<std::byte> bytes;

 private:
  void one(const std::string& text) { (*this)(text); }
  template <class T>
  void one(const T& item) {
    if constexpr (std::is_arithmetic_v<T>) (*this)(item);
    else fields(item, *this);
  }
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(T& value) {
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
  }
  void operator()(std::string& text) {
    std::uint64_t size = 0;
    (*this)(size);
    const auto bytes = take(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  void operator()(std::vector<T>& items) {
    std::uint64_t size = 0;
    (*this)(size);
    if (size > kMostItems) fail();
    items.resize(size);
    for (T& item : items) one(item);
  }
  void finish() const {
    if (!rest_.empty()) fail();
  }
  [[noreturn]] static void fail() {
    throw Error(ErrorKind::internal,
                "front end and ranks of the service do not understand each other; start both from one build");
  }

 private:
  void one(std::string& text) { (*this)(text); }
  template <class T>
  void one(T& item) {
    if constexpr (std::is_arithmetic_v<T>) (*this)(item);
    else fields(item, *this);
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }

  std::span<const std::byte> rest_;
};

// The fields of each message, in the order of their bytes; the same list writes and reads.
template <class M, class T>
concept OneOf = std::is_same_v<std::remove_const_t<M>, T>;

void fields(OneOf<Load> auto& m, auto& f) {
  f(m.matrix), f(m.source), f(m.type), f(m.exchange), f(m.kernel), f(m.sort), f(m.updatable), f(m.solvable),
      f(m.coordinates);
}
void fields(OneOf<Unload> auto& m, auto& f) { f(m.matrix); }
void fields(OneOf<Adopt> auto& m, auto& f) { f(m.matrix); }
void fields(OneOf<Place> auto& m, auto& f) { f(m.vector), f(m.offset), f(m.memory); }
void fields(OneOf<Column> auto& m, auto& f) { fields(m.x, f), fields(m.y, f), f(m.alpha), f(m.beta); }
void fields(OneOf<Multiply> auto& m, auto& f) {
  f(m.matrix), f(m.width), f(m.columns), f(m.x_block), f(m.y_block), f(m.transpose);
}
void fields(OneOf<BatchShape> auto& m, auto& f) { f(m.count), f(m.rows), f(m.cols), f(m.nnz), f(m.columns), f(m.type); }
void fields(OneOf<BatchPart> auto& m, auto& f) { fields(m.shape, f), f(m.offset), f(m.y_offset); }
void fields(OneOf<MultiplyBatches> auto& m, auto& f) { f(m.parts); }
void fields(OneOf<PutValues> auto& m, auto& f) { f(m.matrix), f(m.first), f(m.count), f(m.offset); }
void fields(OneOf<DropValues> auto& m, auto& f) { f(m.matrix); }
void fields(OneOf<MakeVector> auto& m, auto& f) {
  f(m.vector), f(m.matrix), f(m.as_y), f(m.size), f(m.columns), f(m.type), f(m.has_product);
}
void fields(OneOf<WriteVector> auto& m, auto& f) { f(m.vector), f(m.offset); }
void fields(OneOf<ReadVector> auto& m, auto& f) { f(m.vector), f(m.offset), f(m.memory); }
void fields(OneOf<DropVector> auto& m, auto& f) { f(m.vector); }
void fields(OneOf<JobPart> auto& m, auto& f) { f(m.vector), f(m.columns), fields(m.b, f), fields(m.guess, f); }
void fields(OneOf<Begin> auto& m, auto& f) {
  f(m.job), f(m.kind), f(m.matrix), f(m.mass), f(m.width), f(m.settings), f(m.has_b), f(m.has_guess), f(m.guess_columns),
      f(m.parts);
}
void fields(OneOf<Slice> auto& m, auto& f) { f(m.job), f(m.pauses), f(m.ends), f(m.keeps), f(m.x); }
void fields(OneOf<Cancel> auto& m, auto& f) { f(m.job); }
void fields(OneOf<DropSolvers> auto&, auto&) {}
void fields(OneOf<Spy> auto& m, auto& f) { f(m.matrix); }
void fields(OneOf<Attach> auto& m, auto& f) { f(m.memory), f(m.bytes); }
void fields(OneOf<Detach> auto& m, auto& f) { f(m.memory); }
void fields(OneOf<Invite> auto& m, auto& f) { f(m.addresses), f(m.port), f(m.greeting), f(m.secret), f(m.arena_bytes); }
void fields(OneOf<Ping> auto&, auto&) {}
void fields(OneOf<Quit> auto&, auto&) {}
void fields(OneOf<SettingsOfJobs> auto& m, auto& f) { f(m.kind), f(m.names); }
void fields(OneOf<Hello> auto& m, auto& f) {
  f(m.version), f(m.rank), f(m.ranks), f(m.host), f(m.device), f(m.loads_in_background), f(m.threads), f(m.cpus);
  f(m.asks_for_invite), f(m.elsewhere), f(m.secret), f(m.job_settings), f(m.copy_bandwidth), f(m.memory_bytes);
}
void fields(OneOf<WidthTime> auto& m, auto& f) { f(m.width), f(m.seconds), f(m.bytes); }
void fields(OneOf<Loaded> auto& m, auto& f) {
  f(m.rows), f(m.cols), f(m.nnz), f(m.bytes), f(m.update_bytes), f(m.solve_bytes), f(m.transposable), f(m.kernel),
      f(m.exchange), f(m.widths);
  f(m.why), f(m.x_distribution), f(m.y_distribution);
}
void fields(OneOf<Multiplied> auto& m, auto& f) { f(m.copy_in), f(m.product), f(m.copy_out), f(m.matrix_bytes); }
void fields(OneOf<BatchesMultiplied> auto& m, auto& f) { fields(m.seconds, f), f(m.wrong); }
void fields(OneOf<VectorMade> auto& m, auto& f) { f(m.size), f(m.bytes), f(m.distribution), f(m.matrix_bytes); }
void fields(OneOf<Begun> auto& m, auto& f) { f(m.x); }
void fields(OneOf<Residual> auto& m, auto& f) { f(m.iteration), f(m.norms); }
void fields(OneOf<JobColumn> auto& m, auto& f) { f(m.converged), f(m.iterations), f(m.share), f(m.facts), f(m.explanation); }
void fields(OneOf<HeldSolver> auto& m, auto& f) {
  f(m.settings), f(m.columns), f(m.method), f(m.preconditioner), f(m.note), f(m.bytes);
}
void fields(OneOf<Density> auto& m, auto& f) { f(m.height), f(m.width), f(m.counts); }
void fields(OneOf<Progress> auto& m, auto& f) {
  f(m.pauses), f(m.seconds), f(m.is_set_up), f(m.set_up), f(m.facts), f(m.solvers), f(m.residuals), f(m.ended);
  f(m.columns);
}
void fields(OneOf<Failed> auto& m, auto& f) { f(m.kind), f(m.message), f(m.missing_bytes); }
void fields(OneOf<Done> auto&, auto&) {}
void fields(OneOf<Alive> auto&, auto&) {}

template <class Message>
std::vector<std::byte> encode_message(const Message& message) {
  Writer writer;
  writer(message.number);
  writer(static_cast<std::uint8_t>(message.what.index()));
  std::visit([&](const auto& what) { fields(what, writer); }, message.what);
  return std::move(writer.bytes);
}

/// Makes alternative `index` of the variant and reads its fields.
template <std::size_t I = 0, class Variant>
void read_alternative(std::size_t index, Variant& what, Reader& reader) {
  if constexpr (I < std::variant_size_v<Variant>) {
    if (index != I) return read_alternative<I + 1>(index, what, reader);
    fields(what.template emplace<I>(), reader);
  } else {
    Reader::fail();
  }
}

template <class Message>
Message decode_message(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Message message;
  std::uint8_t index = 0;
  reader(message.number);
  reader(index);
  read_alternative(index, message.what, reader);
  reader.finish();
  return message;
}

}  // namespace

std::vector<std::byte> encode(const Command& command) { return encode_message(command); }
std::vector<std::byte> encode(const Answer& answer) { return encode_message(answer); }
Command decode_command(std::span<const std::byte> bytes) { return decode_message<Command>(bytes); }
Answer decode_answer(std::span<const std::byte> bytes) { return decode_message<Answer>(bytes); }

}  // namespace shardmat::service
