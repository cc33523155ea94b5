// What the front end of the service tells the ranks to do, and what each rank answers, as values and as bytes. Both sides
// share this file; it knows neither MPI nor HTTP.
//
// All ranks get the same commands in the same order, with rising numbers. A rank carries out one command after the other and
// answers each once. Ranks that said so in their Hello carry out a Load in the background: they answer later commands before
// it. While a command takes long, the rank also says that it is alive.
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
#include "partition/batched/batch_shape.h"

namespace shardmat::service {

/// Front end and ranks come from one build; this catches a mix of two.
constexpr std::uint32_t kProtocolVersion = 14;

/// Loads a matrix from the library. `matrix` is the number by which later commands name it. The answer is Loaded; of a Load
/// in the background it is Done, and Adopt has to follow.
struct Load {
  std::uint64_t matrix = 0;
  std::string source;  ///< path below the library
  ValueType type = ValueType::f64;
  std::string exchange = "auto", kernel = "auto";
  std::string sort = "auto";     ///< parse_local_sort()
  bool updatable = false;        ///< PutValues may follow
  bool solvable = false;         ///< Begin may follow
  std::string coordinates = {};  ///< file below the library that tells where nodes lie, for solvers; empty: none
  bool operator==(const Load&) const = default;
};

/// Takes over the matrix that was loaded in the background. The answer is Loaded.
struct Adopt {
  std::uint64_t matrix = 0;
  bool operator==(const Adopt&) const = default;
};

struct Unload {
  std::uint64_t matrix = 0;
  bool operator==(const Unload&) const = default;
};

/// Where a column is: in the arena or a memory of a client, in original order; or in a vector of one column that stays on
/// the ranks.
struct Place {
  std::uint64_t vector = 0;  ///< number of the vector; 0: in the arena, or in a memory
  std::uint64_t offset = 0;  ///< bytes from the start of the arena or the memory
  std::uint64_t memory = 0;  ///< number of the client's memory; 0: in the arena
  bool operator==(const Place&) const = default;
};

/// y = alpha·A·x + beta·y. All have the type of the matrix.
struct Column {
  Place x, y;
  double alpha = 1, beta = 0;
  bool operator==(const Column&) const = default;
};

/// The most columns of one request, and of a product of several requests.
constexpr std::int64_t kMostColumns = 32;

/// One product of `width` columns: the given ones, then columns of zeros. Columns beyond `width` go to further products, one
/// after another.
struct Multiply {
  std::uint64_t matrix = 0;
  std::int64_t width = 1;
  std::vector<Column> columns;
  /// Numbers of vectors of `width` columns that are X and Y as they lie, in place of those of `columns`; 0: none. With one
  /// of them there are `width` columns, all with the same alpha and beta.
  std::uint64_t x_block = 0, y_block = 0;
  bool transpose = false;  ///< y = alpha·Aᵀ·x + beta·y, alpha and beta the same for all: x has the rows of A, y its columns
  bool operator==(const Multiply&) const = default;
};

/// The batch of one request, in the arena.
struct BatchPart {
  BatchShape shape;
  std::uint64_t offset = 0, y_offset = 0;  ///< of its body and of Y: bytes from the start of the arena
  bool operator==(const BatchPart&) const = default;
};

/// One product of all matrices of batches with the same type and number of columns. The answer is BatchesMultiplied.
struct MultiplyBatches {
  std::vector<BatchPart> parts;
  bool operator==(const MultiplyBatches&) const = default;
};

/// A piece of new values for a matrix, in the arena: those from `first` on, in the order of the file. Pieces follow each
/// other; a piece with first = 0 begins anew. The last one replaces the values of the matrix by all pieces.
struct PutValues {
  std::uint64_t matrix = 0;
  std::uint64_t first = 0, count = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the arena
  bool operator==(const PutValues&) const = default;
};

/// Frees the pieces of values whose last piece does not come.
struct DropValues {
  std::uint64_t matrix = 0;
  bool operator==(const DropValues&) const = default;
};

/// Makes a vector of zeros that stays on the ranks: a row-major block of `columns` columns. It is distributed as x or y of a
/// matrix, or in equal parts.
struct MakeVector {
  std::uint64_t vector = 0;  ///< the number by which later commands name it
  std::uint64_t matrix = 0;  ///< 0: `size` entries in equal parts
  bool as_y = false;         ///< of a matrix: distributed as y
  std::int64_t size = 0;
  std::int64_t columns = 1;
  ValueType type = ValueType::f64;
  bool has_product = true;  ///< of several columns: its matrix makes a product for so many now, and not with the first one
  bool operator==(const MakeVector&) const = default;
};

/// Between a vector and the arena, where its columns lie one after another, in original order. A client's memory may take
/// the arena's place when one is read.
struct WriteVector {
  std::uint64_t vector = 0, offset = 0;
  bool operator==(const WriteVector&) const = default;
};
struct ReadVector {
  std::uint64_t vector = 0, offset = 0;
  std::uint64_t memory = 0;  ///< as in Place
  bool operator==(const ReadVector&) const = default;
};
struct DropVector {
  std::uint64_t vector = 0;
  bool operator==(const DropVector&) const = default;
};

/// The columns of one client in a job.
struct JobPart {
  std::uint64_t vector = 0;  ///< number of the vector that its columns of X become
  std::int64_t columns = 1;
  Place b, guess;  ///< of the first column; the others follow it
  bool operator==(const JobPart&) const = default;
};

/// Begins a job on a matrix that was loaded as solvable: takes the columns of B and of the first X, in original order. The
/// columns of X become vectors that stay, one for each part. Nothing is computed yet.
struct Begin {
  std::uint64_t job = 0;  ///< the number by which later commands name it
  std::string kind;       ///< kinds_of_jobs()
  std::uint64_t matrix = 0;
  std::uint64_t mass = 0;                 ///< M of K·x = λ·M·x; 0: none
  std::int64_t width = 1;                 ///< columns that are iterated at once: those of the parts, then zeros
  std::string settings;                   ///< "solver=cg rtol=1e-10"
  bool has_b = false, has_guess = false;  ///< of all parts, or of none; without a guess X begins as the kind says
  std::int64_t guess_columns = 0;         ///< of the guess of the one part; 0: as many as its X
  std::vector<JobPart> parts;
  bool operator==(const Begin&) const = default;
};

/// A job goes on: for some time, while it is set up; then until it has paused so many times more. Or until it has ended.
struct Slice {
  std::uint64_t job = 0;
  std::int64_t pauses = 1;
  bool ends = false;             ///< the job ends here, whatever it has come to
  bool keeps = false;            ///< writes X, as far as it came, to the arena
  std::vector<std::uint64_t> x;  ///< where to: bytes from the start of the arena, for each part; empty: nowhere
  bool operator==(const Slice&) const = default;
};

/// Ends a job and drops its vectors.
struct Cancel {
  std::uint64_t job = 0;
  bool operator==(const Cancel&) const = default;
};

/// Asks for the rank's share of a small picture of the matrix. The answer is Density.
struct Spy {
  std::uint64_t matrix = 0;
  bool operator==(const Spy&) const = default;
};

/// Frees the solvers of all matrices that no job uses.
struct DropSolvers {
  bool operator==(const DropSolvers&) const = default;
};

/// Maps the memory that a client shares with the service, so that places may name it. Its descriptor comes with the message.
struct Attach {
  std::uint64_t memory = 0;  ///< the number by which later commands name it
  std::uint64_t bytes = 0;
  bool operator==(const Attach&) const = default;
};

/// The opposite. A rank that does not have the memory does nothing.
struct Detach {
  std::uint64_t memory = 0;
  bool operator==(const Detach&) const = default;
};

/// Where ranks on other hosts reach the front end. It comes before all other commands, to the rank that asked for it in its
/// Hello, and has no answer. Who connects there hears the bytes of `greeting` first, and gives `secret` in its Hello.
struct Invite {
  std::vector<std::string> addresses;  ///< of the front end's host, numeric
  std::uint16_t port = 0;
  std::string greeting, secret;
  std::uint64_t arena_bytes = 0;
  bool operator==(const Invite&) const = default;
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
  std::variant<Load, Unload, Multiply, Ping, Quit, PutValues, DropValues, MakeVector, WriteVector, ReadVector, DropVector,
               Attach, Detach, Adopt, Invite, Begin, Slice, Cancel, DropSolvers, MultiplyBatches, Spy>
      what;
  bool operator==(const Command&) const = default;
};

/// Names that Begin::settings may have.
struct SettingsOfJobs {
  std::string kind;
  std::vector<std::string> names;
  bool operator==(const SettingsOfJobs&) const = default;
};

/// The first thing that a rank says.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::int32_t rank = 0, ranks = 1;
  std::string host, device;
  bool loads_in_background = false;
  std::int32_t threads = 1;                  ///< host threads of the rank
  std::string cpus;                          ///< numbers of the cores that it may use, as "0-3,8"
  bool asks_for_invite = false;              ///< ranks on other hosts follow
  bool elsewhere = false;                    ///< on another host than the front end
  std::string secret;                        ///< Invite::secret, if elsewhere
  std::vector<SettingsOfJobs> job_settings;  ///< of each kind of job
  double copy_bandwidth = 0;      ///< bytes a second of a copy on its device while all ranks copy; 0: not measured
  std::int64_t memory_bytes = 0;  ///< of its device that were free when it started
  bool operator==(const Hello&) const = default;
};

/// Seconds of one product of `width` columns with its copies, on the slowest rank, and the least bytes that it moves on this
/// rank.
struct WidthTime {
  std::int64_t width = 1;
  double seconds = 0;
  std::int64_t bytes = 0;
  bool operator==(const WidthTime&) const = default;
};

struct Loaded {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t bytes = 0;         ///< of this rank's device: the matrix, and X and Y of every width
  std::int64_t update_bytes = 0;  ///< of them: what keeps the matrix updatable
  std::int64_t solve_bytes = 0;   ///< rows in host memory that keep it solvable, beside what products take
  bool transposable = true;       ///< Multiply::transpose may be set; the same on all ranks
  std::string kernel, exchange;   ///< of this rank
  std::string why;                ///< this kernel, in one line
  std::vector<WidthTime> widths;  ///< by width; the same on all ranks
  /// How x and y are distributed. Vectors with equal numbers are distributed alike; the same on all ranks.
  std::uint64_t x_distribution = 0, y_distribution = 0;
  bool operator==(const Loaded&) const = default;
};

/// Seconds of the parts of a product.
struct Multiplied {
  double copy_in = 0, product = 0, copy_out = 0;
  std::int64_t matrix_bytes = 0;  ///< Loaded::bytes, if a product was made for the columns of a vector; else 0
  bool operator==(const Multiplied&) const = default;
};

struct BatchesMultiplied {
  Multiplied seconds;
  std::vector<std::string> wrong;  ///< with each part, as far as this rank has seen it; empty: nothing
  bool operator==(const BatchesMultiplied&) const = default;
};

struct VectorMade {
  std::int64_t size = 0;
  std::int64_t bytes = 0;          ///< of this rank's device
  std::uint64_t distribution = 0;  ///< as in Loaded
  std::int64_t matrix_bytes = 0;   ///< Loaded::bytes of its matrix, with the product for its columns; 0: no matrix
  bool operator==(const VectorMade&) const = default;
};

/// The answer to Begin.
struct Begun {
  std::vector<VectorMade> x;  ///< of each part
  bool operator==(const Begun&) const = default;
};

struct Residual {
  std::int64_t iteration = 0;
  std::vector<double> norms;  ///< of the columns' residuals
  bool operator==(const Residual&) const = default;
};

/// What became of a column of X.
struct JobColumn {
  bool converged = false;
  std::int64_t iterations = 0;
  double share = 0;         ///< of its residual: in that of b, say
  std::string facts;        ///< all that there is to say, as a JSON object
  std::string explanation;  ///< of a column that did not converge
  bool operator==(const JobColumn&) const = default;
};

/// A solver that stays on the ranks.
struct HeldSolver {
  std::string settings;  ///< as they were asked for
  std::int64_t columns = 1;
  std::string method, preconditioner, note;  ///< note: what the preconditioner is made of
  std::int64_t bytes = 0;                    ///< of this rank's device, beside Loaded::bytes
  bool operator==(const HeldSolver&) const = default;
};

/// The answer to Slice.
struct Progress {
  std::int64_t pauses = 0;  ///< 0: it was being set up, or has no iterations of equal length
  double seconds = 0;
  bool is_set_up = false;
  double set_up = 0;  ///< seconds in which the ranks have set it up
  std::string facts;  ///< what was set up, then how it ended, as a JSON object; empty: as before
  /// All of the matrix, the one that was used last first. Told by the first slice after the set-up and by the last slice.
  std::vector<HeldSolver> solvers;
  std::vector<Residual> residuals;  ///< since the last slice; of rank 0 alone
  bool ended = false;
  std::vector<JobColumn> columns;  ///< once it has ended; none: it was not set up yet
  bool operator==(const Progress&) const = default;
};

constexpr std::int64_t kMostCells = 64;
/// The cell of a row, or of a column, among `cells` cells for `size` rows. Indices up to 2^53.
constexpr std::int64_t cell_of(std::int64_t index, std::int64_t size, std::int64_t cells) { return index * cells / size; }

/// Nonzeros of this rank's rows in each cell of a grid over the whole matrix, row by row of the grid. Rows and columns are
/// in the order of the source.
struct Density {
  std::int64_t height = 0, width = 0;  ///< at most kMostCells; of a smaller matrix its rows, its columns
  std::vector<std::uint64_t> counts;   ///< height · width
  bool operator==(const Density&) const = default;
};

/// The command failed alike on all ranks, and changed nothing.
struct Failed {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
  std::int64_t missing_bytes = 0;  ///< of memory on this rank; 0 if it did not lack memory
  bool operator==(const Failed&) const = default;
};

/// The command is done and has no result.
struct Done {
  bool operator==(const Done&) const = default;
};

/// The command is still being carried out.
struct Alive {
  bool operator==(const Alive&) const = default;
};

struct Answer {
  std::uint64_t number = 0;  ///< of the command; 0 for Hello
  std::variant<Hello, Loaded, Multiplied, Failed, Done, Alive, VectorMade, Begun, Progress, BatchesMultiplied, Density> what;
  bool operator==(const Answer&) const = default;
};

/// The bytes of a message, to be sent as one frame (frames.h).
std::vector<std::byte> encode(const Command& command);
std::vector<std::byte> encode(const Answer& answer);
/// The opposite. Throws Error(internal) for bytes that encode() does not make.
Command decode_command(std::span<const std::byte> bytes);
Answer decode_answer(std::span<const std::byte> bytes);

}  // namespace shardmat::service
