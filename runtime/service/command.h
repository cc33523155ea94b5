// What the front end of the service tells the ranks to do, and what each rank answers, as values and as bytes. Both sides
// share this file; it knows neither MPI nor HTTP.
//
// All ranks get the same commands in the same order, with rising numbers. A rank carries out one command after the other and
// answers each once. While a command takes long, the rank also says that it is alive.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/types.h"

namespace shardmat::service {

/// Front end and ranks come from one build; this catches a mix of two.
constexpr std::uint32_t kProtocolVersion = 1;

/// Loads a matrix from the library. `matrix` is the number by which later commands name it.
struct Load {
  std::uint64_t matrix = 0;
  std::string source;  ///< path below the library
  ValueType type = ValueType::f64;
  std::string exchange = "auto";
  bool operator==(const Load&) const = default;
};

struct Unload {
  std::uint64_t matrix = 0;
  bool operator==(const Unload&) const = default;
};

/// y = alpha·A·x. Both vectors lie in the arena, in original order, and have the type of the matrix.
struct Column {
  std::uint64_t x = 0, y = 0;  ///< bytes from the start of the arena
  double alpha = 1;
  bool operator==(const Column&) const = default;
};

/// One product of `width` columns: the given ones, then columns of zeros.
struct Multiply {
  std::uint64_t matrix = 0;
  std::int64_t width = 1;
  std::vector<Column> columns;
  bool operator==(const Multiply&) const = default;
};

/// Asks an idle rank for a sign of life.
struct Ping {
  bool operator==(const Ping&) const = default;
};

/// The rank ends MPI and its process.
struct Quit {
  bool operator==(const Quit&) const = default;
};

struct Command {
  std::uint64_t number = 0;
  std::variant<Load, Unload, Multiply, Ping, Quit> what;
  bool operator==(const Command&) const = default;
};

/// The first thing that a rank says.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::int32_t rank = 0, ranks = 1;
  std::string host, device;
  bool operator==(const Hello&) const = default;
};

/// Seconds of one product of `width` columns with its copies, on the slowest rank.
struct WidthTime {
  std::int64_t width = 1;
  double seconds = 0;
  bool operator==(const WidthTime&) const = default;
};

struct Loaded {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t bytes = 0;         ///< of this rank's device: the matrix, and X and Y of every width
  std::string kernel, exchange;   ///< of this rank
  std::vector<WidthTime> widths;  ///< by width; the same on all ranks
  bool operator==(const Loaded&) const = default;
};

/// Seconds of the parts of a product.
struct Multiplied {
  double copy_in = 0, product = 0, copy_out = 0;
  bool operator==(const Multiplied&) const = default;
};

/// The command failed alike on all ranks, and changed nothing.
struct Failed {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
  bool operator==(const Failed&) const = default;
};

/// The command is done and has no result: Unload, Ping, Quit.
struct Done {
  bool operator==(const Done&) const = default;
};

/// The command is still being carried out.
struct Alive {
  bool operator==(const Alive&) const = default;
};

struct Answer {
  std::uint64_t number = 0;  ///< of the command; 0 for Hello
  std::variant<Hello, Loaded, Multiplied, Failed, Done, Alive> what;
  bool operator==(const Answer&) const = default;
};

/// The bytes of a message, to be sent as one frame (frames.h).
std::vector<std::byte> encode(const Command& command);
std::vector<std::byte> encode(const Answer& answer);
/// The opposite. Throws Error(internal) for bytes that encode() does not make.
Command decode_command(std::span<const std::byte> bytes);
Answer decode_answer(std::span<const std::byte> bytes);

}  // namespace shardmat::service
