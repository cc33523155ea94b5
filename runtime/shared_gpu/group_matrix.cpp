#include "runtime/shared_gpu/group_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/exchange/exchange.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"
#include "runtime/matrix/dense_copy.h"
#include "runtime/shared_gpu/answer_bytes.h"
#include "runtime/shared_gpu/hand_over.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

/// What a rank says of the rows or triplets that it gives.
struct Piece {
  RowRange range;
  std::int64_t cols, entries;
  ValueType type;
};

/// An operand of one value of each rank.
template <class T>
Operand one_value(const T& value) {
  return {sizeof value, [value](void* to) { std::memcpy(to, &value, sizeof value); }, {}};
}

/// The pieces of the group together.
struct Joined {
  RowRange range;
  std::vector<RowRange> further;
  std::int64_t cols, entries;
  ValueType type;
};

/// Throws Error(input) or Error(usage) if they do not belong together.
Joined join_pieces(std::span<const Piece> pieces) {
  const auto with_entries = std::find_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.entries > 0; });
  const ValueType type = with_entries == pieces.end() ? pieces.front().type : with_entries->type;
  Joined all{pieces.front().range, {}, pieces.front().cols, 0, type};
  for (const Piece& piece : pieces) {
    if (piece.entries > 0 && piece.type != all.type)
      throw Error(ErrorKind::usage,
                  fmt::format("ranks that share an owner give values of the types {} and {}; give one type", name(all.type),
                              name(piece.type)));
    if (piece.cols != all.cols)
      throw Error(ErrorKind::input,
                  fmt::format("one rank gives {} columns for the whole matrix, and another rank {}", all.cols, piece.cols));
    all.entries += piece.entries;
    if (&piece == &pieces.front() || piece.range.count == 0) continue;
    RowRange& last = all.further.empty() ? all.range : all.further.back();
    if (last.count == 0) last = piece.range;
    else if (piece.range.first == last.first + last.count) last.count += piece.range.count;
    else all.further.push_back(piece.range);
  }
  return all;
}

/// Collective. The matrix's type, which is to be the same on all ranks. `follows`: it is that of the values given, and does
/// not count on a rank without entries. Throws Error(usage) on all ranks if they differ.
ValueType common_type(ValueType mine, bool follows, std::int64_t entries, Communicator& ranks) {
  struct Said {
    ValueType type;
    bool counts;
  };
  const std::vector<Said> all = ranks.all_gather(Said{mine, !follows || entries > 0});
  const auto first = std::find_if(all.begin(), all.end(), [](const Said& said) { return said.counts; });
  if (first == all.end()) return all.front().type;
  const auto other =
      std::find_if(first, all.end(), [&](const Said& said) { return said.counts && said.type != first->type; });
  ranks.run_agreed([&] {
    if (other != all.end())
      throw Error(ErrorKind::usage,
                  fmt::format("rank {} gives a matrix of type {}, but rank {} one of {}; give one type", first - all.begin(),
                              name(first->type), other - all.begin(), name(other->type)),
                  "type");
  });
  return first->type;
}

/// Operands of CSR rows: the piece, where each row ends (the owner: a 0 before), columns, values.
std::vector<Operand> operands_of(const OwnRows& rows, bool owner) {
  const std::size_t count = static_cast<std::size_t>(rows.range.count), ends = count + (owner ? 1 : 0);
  const auto write_ends = [=](void* memory) {
    auto* to = static_cast<std::int64_t*>(memory);
    if (owner) *to++ = 0;
    for (std::size_t i = 0; i < count; ++i) to[i] = rows.row_ptr[i + 1] - rows.row_ptr[0];
  };
  return {one_value(Piece{rows.range, rows.cols, std::ssize(rows.columns), rows.values.type}),
          {ends * sizeof(std::int64_t), write_ends, {}},
          Operand::given(rows.columns.data(), rows.columns.size_bytes()),
          Operand::given(rows.values.data, rows.columns.size() * size_of(rows.values.type))};
}

OwnRows rows_of_group(std::span<const GroupOperand> all) {
  const std::span<const Piece> pieces = all[0].as<Piece>();
  const Joined joined = join_pieces(pieces);
  const std::span<std::int64_t> ends = all[1].as<std::int64_t>();
  std::int64_t entries = 0;
  std::size_t row = 1;
  for (const Piece& piece : pieces) {
    for (std::int64_t i = 0; i < piece.range.count; ++i) ends[row++] += entries;
    entries += piece.entries;
  }
  return {joined.range, joined.cols, ends, all[2].as<std::int64_t>(), {all[3].data, joined.type}, Device{}, joined.further};
}

std::vector<Operand> operands_of(const OwnTriplets& given) {
  if (given.rows.size() != given.columns.size())
    throw Error(ErrorKind::input,
                fmt::format("{} rows of triplets came with {} columns", given.rows.size(), given.columns.size()));
  return {one_value(Piece{given.range, given.cols, std::ssize(given.rows), given.values.type}),
          Operand::given(given.rows.data(), given.rows.size_bytes()),
          Operand::given(given.columns.data(), given.columns.size_bytes()),
          Operand::given(given.values.data, given.rows.size() * size_of(given.values.type))};
}

OwnTriplets triplets_of_group(std::span<const GroupOperand> all) {
  const Joined joined = join_pieces(all[0].as<Piece>());
  return {joined.range, joined.cols,   all[1].as<std::int64_t>(), all[2].as<std::int64_t>(), {all[3].data, joined.type},
          Device{},     joined.further};
}

/// Copies in host memory of arrays that lie in memory of a GPU.
class HostCopies {
 public:
  HostCopies(GroupContext& context, Device device) : context_(context), device_(device) {}

  /// The array, or a copy of it. `what` names it in messages.
  const void* of(const char* what, const void* array, std::size_t bytes) {
    if (device_.backend == Backend::host || bytes == 0 || array == nullptr) return array;
    context_.require_on_device(what, array, bytes);
    require_host_memory(static_cast<std::int64_t>(bytes), what);
    copies_.emplace_back(Device{}, bytes);
    copy_to_host(copies_.back().data(), array, bytes, context_.stream_of(device_));
    return copies_.back().data();
  }
  std::span<const std::int64_t> of(const char* what, std::span<const std::int64_t> array) {
    return {static_cast<const std::int64_t*>(of(what, array.data(), array.size_bytes())), array.size()};
  }

 private:
  GroupContext& context_;
  Device device_;
  std::vector<Buffer> copies_;
};

/// What must hold before a rank's arrays are read.
void require_readable(RowRange range, std::span<const RowRange> further, const void* values, std::size_t entries) {
  if (range.count < 0) throw Error(ErrorKind::input, fmt::format("{} rows; their number must not be negative", range.count));
  if (!further.empty()) throw Error(ErrorKind::usage, "a rank gives one range of rows here, and this one gives several");
  if (values == nullptr && entries > 0) throw Error(ErrorKind::usage, "own values have no memory (null pointer)");
}

}  // namespace

MatrixShape shape_of_file(GroupContext& context, const std::function<std::string()>& give) {
  std::string name;
  const auto open = [&] {
    const MatrixSource source = open_matrix(name, context.context());
    return MatrixShape{source.rows->rows(), source.rows->cols()};
  };
  if (!context.has_feeders()) {
    name = context.ranks().run_agreed(give);
    return open();
  }
  AnswerBytes from(context.group().call(
      "the size of a file",
      [&] {
        name = give();
        return std::vector<Operand>();
      },
      [&](std::span<const GroupOperand>) {
        AnswerBytes made;
        made.put(open());
        return made.text();
      }));
  MatrixShape shape;
  from.get(shape);
  return shape;
}

GroupMatrix::GroupMatrix(GroupContext& context, const std::function<GivenRows()>& give) : context_(context) {
  GivenRows given;
  const auto make = [&](const OwnRows& rows) {
    Context& of = context_.context();
    given.options.type = common_type(given.type_of_values ? rows.values.type : given.options.type, given.type_of_values,
                                     std::ssize(rows.columns), of.communicator());
    matrix_ = std::make_unique<DistributedMatrix>(
        take_rows(rows, of, given.options.type, given.method, given.node_block_size), of, given.options);
    note(*matrix_);
  };
  if (!context.has_feeders()) {
    given = context.ranks().run_agreed([&] {
      GivenRows mine = give();
      require_readable(mine.rows.range, mine.rows.further, mine.rows.values.data, mine.rows.columns.size());
      return mine;
    });
    make(given.rows);
  } else {
    std::optional<HostCopies> copies;
    take_answer(context.group().call(
        "the matrix of own rows",
        [&] {
          given = give();
          OwnRows& rows = given.rows;
          require_readable(rows.range, rows.further, rows.values.data, rows.columns.size());
          copies.emplace(context_, rows.device);
          rows.row_ptr = copies->of("row_ptr", rows.row_ptr), rows.columns = copies->of("columns", rows.columns);
          rows.values.data = copies->of("values", rows.values.data, rows.columns.size() * size_of(rows.values.type));
          rows.device = Device{};
          require_offsets(rows.row_ptr, rows);
          return operands_of(rows, context_.owns());
        },
        [&](std::span<const GroupOperand> all) {
          make(context_.group().owners().run_agreed([&] { return rows_of_group(all); }));
          return answer();
        },
        RankGroup::Keep::nothing));
  }
  plan_ = given.options.plan;
  own_ = given.rows.range, own_rows_ = own_.count, own_values_ = std::ssize(given.rows.columns);
  share_x();
}

GroupMatrix::GroupMatrix(GroupContext& context, const std::function<GivenTriplets()>& give) : context_(context) {
  GivenTriplets given;
  const auto make = [&](const OwnTriplets& triplets) {
    Context& of = context_.context();
    given.options.type = common_type(given.type_of_values ? triplets.values.type : given.options.type, given.type_of_values,
                                     std::ssize(triplets.rows), of.communicator());
    matrix_ = std::make_unique<DistributedMatrix>(
        take_triplets(triplets, of, given.options.type, given.method, given.node_block_size), of, given.options);
    note(*matrix_);
  };
  if (!context.has_feeders()) {
    given = context.ranks().run_agreed([&] {
      GivenTriplets mine = give();
      require_readable(mine.triplets.range, mine.triplets.further, mine.triplets.values.data, mine.triplets.rows.size());
      return mine;
    });
    make(given.triplets);
  } else {
    std::optional<HostCopies> copies;
    take_answer(context.group().call(
        "the matrix of triplets",
        [&] {
          given = give();
          OwnTriplets& triplets = given.triplets;
          require_readable(triplets.range, triplets.further, triplets.values.data, triplets.rows.size());
          copies.emplace(context_, triplets.device);
          triplets.rows = copies->of("rows", triplets.rows), triplets.columns = copies->of("columns", triplets.columns);
          triplets.values.data =
              copies->of("values", triplets.values.data, triplets.rows.size() * size_of(triplets.values.type));
          triplets.device = Device{};
          return operands_of(triplets);
        },
        [&](std::span<const GroupOperand> all) {
          make(context_.group().owners().run_agreed([&] { return triplets_of_group(all); }));
          return answer();
        },
        RankGroup::Keep::nothing));
  }
  plan_ = given.options.plan;
  own_ = given.triplets.range, own_rows_ = own_.count, own_values_ = std::ssize(given.triplets.rows);
  share_x();
}

GroupMatrix::GroupMatrix(GroupContext& context, const std::function<GivenFile()>& give) : context_(context), of_file_(true) {
  GivenFile given;
  const auto make = [&] {
    OpenOptions open;
    open.transposed = given.transposed;
    open.method = given.options.method, open.node_block_size = given.options.node_block_size;
    const MatrixSource source = open_matrix(given.name, context_.context(), open);
    matrix_ = std::make_unique<DistributedMatrix>(source, context_.context(), given.options);
    note(*matrix_);
  };
  if (!context.has_feeders()) {
    given = context.ranks().run_agreed(give);
    make();
  } else {
    take_answer(context.group().call(
        "the matrix of a file",
        [&] {
          given = give();
          return std::vector<Operand>();
        },
        [&](std::span<const GroupOperand>) {
          make();
          return answer();
        }));
  }
  plan_ = given.options.plan;
  if (matrix_ != nullptr) own_rows_ = matrix_->y_rows()->own_rows(), own_values_ = matrix_->local_nnz();
  share_x();
}

void GroupMatrix::note(const DistributedMatrix& made) {
  facts_ = {made.rows(),
            made.cols(),
            made.nnz(),
            made.type(),
            made.options().values == Values::updatable,
            made.y_rows()->route() != nullptr};
  facts_.node_block_size = made.node_block_size();
  facts_.x_entries = std::ssize(made.x_rows()->ids());
  if (facts_.x_entries > 0) facts_.first_x = made.x_rows()->ids().front();
}

std::string GroupMatrix::answer() const {
  AnswerBytes made;
  made.put(facts_);
  return made.text();
}

void GroupMatrix::take_answer(const std::string& text) { AnswerBytes(text).get(facts_); }

void GroupMatrix::share_x() {
  own_cols_ = square() ? own_rows_ : facts_.x_entries;
  if (square() || !context_.has_feeders()) return;
  if (of_file_) {
    if (!context_.owns()) own_cols_ = 0;
    return;
  }
  const auto starts = even_starts(facts_.x_entries, context_.group().size());
  const auto place = static_cast<std::size_t>(context_.group().place());
  facts_.first_x += starts[place];
  own_cols_ = starts[place + 1] - starts[place];
}

DistributedMatrix& GroupMatrix::matrix() const {
  context_.context();  // throws on a feeder
  return *matrix_;
}

HostVector<std::int64_t> GroupMatrix::ids(VectorLayout layout) const {
  const bool by_rows = layout == VectorLayout::rows || square();
  if (by_rows && facts_.spread)
    throw Error(
        ErrorKind::usage,
        "a partitioner spread the rows anew; vectors are in the rows that this rank gave, and have no other numbers");
  HostVector<std::int64_t> ids(static_cast<std::size_t>(by_rows ? own_rows_ : own_cols_));
  if (context_.has_feeders() && !of_file_) {
    std::iota(ids.begin(), ids.end(), by_rows ? own_.first : facts_.first_x);
  } else if (matrix_ != nullptr) {
    ids = (by_rows ? matrix_->y_rows() : matrix_->x_rows())->ids_by_place();
  }
  return ids;
}

GroupProduct GroupMatrix::product(const std::function<ProductOptions()>& give) {
  GroupProduct made;
  const auto make = [&](const ProductOptions& options) {
    made.ordered = std::make_unique<OrderedProduct>(*matrix_, options);
    made.kernel = made.ordered->kernel(), made.why = made.ordered->why();
    made.exchange = made.ordered->product().exchange().name();
  };
  ProductOptions options;
  if (!context_.has_feeders()) {
    options = context_.ranks().run_agreed(give);
    made.columns = options.columns;
    make(options);
    return made;
  }
  AnswerBytes from(context_.group().call(
      "making a product",
      [&] {
        options = give();
        return std::vector<Operand>{one_value(options.columns)};
      },
      [&](std::span<const GroupOperand> all) {
        context_.group().owners().run_agreed([&] { require_same_columns(all[0].as<std::int64_t>()); });
        make(options);
        AnswerBytes text;
        text.put(made.kernel), text.put(made.why), text.put(made.exchange);
        return text.text();
      }));
  made.columns = options.columns;
  from.get(made.kernel), from.get(made.why), from.get(made.exchange);
  return made;
}

GroupProduct GroupMatrix::transposed_product(const std::function<std::int64_t()>& give) {
  GroupProduct made;
  made.is_transposed = true;
  const auto make = [&] {
    made.transposed = std::make_unique<OrderedTranspose>(*matrix_, made.columns);
    made.kernel = made.transposed->product().kernel(), made.why = "the transpose of the matrix as it is stored";
    made.exchange = matrix_->context().communicator().size() == 1 ? "none" : "sums go to their owners";
  };
  if (!context_.has_feeders()) {
    made.columns = context_.ranks().run_agreed(give);
    make();
    return made;
  }
  AnswerBytes from(context_.group().call(
      "making a transposed product",
      [&] {
        made.columns = give();
        return std::vector<Operand>{one_value(made.columns)};
      },
      [&](std::span<const GroupOperand> all) {
        context_.group().owners().run_agreed([&] { require_same_columns(all[0].as<std::int64_t>()); });
        make();
        AnswerBytes text;
        text.put(made.kernel), text.put(made.why), text.put(made.exchange);
        return text.text();
      }));
  from.get(made.kernel), from.get(made.why), from.get(made.exchange);
  return made;
}

void GroupMatrix::multiply(GroupProduct& with, double alpha, const ConstDense& x, double beta, const Dense& y,
                           Stream& stream, bool wait) {
  multiply(
      with, alpha, beta,
      [&] {
        return Vectors{x, y};
      },
      stream, wait);
}

void GroupMatrix::multiply(GroupProduct& with, double alpha, double beta, const std::function<Vectors()>& give,
                           Stream& stream, bool wait) {
  if (!context_.has_feeders()) {
    const Vectors mine = give();
    if (with.is_transposed) return with.transposed->multiply(alpha, mine.x, beta, mine.y, stream, wait);
    return with.ordered->multiply(alpha, mine.x, beta, mine.y, stream, wait);
  }
  const std::int64_t entries_of_x = with.is_transposed ? own_rows_ : own_cols_,
                     entries_of_y = with.is_transposed ? own_cols_ : own_rows_;
  HandOver over(context_, stream);
  context_.group().call(
      "the product",
      [&] {
        const Vectors mine = give();
        require_dense("X", mine.x, entries_of_x, with.columns, type(), mine.x.device);
        require_dense("Y", mine.y, entries_of_y, with.columns, sum_type(type()), mine.y.device);
        over.give("X", mine.x, type());
        over.give_and_take("Y", mine.y, sum_type(type()), beta != 0);
        return over.operands();
      },
      [&](std::span<const GroupOperand> all) {
        over.gather(all);
        if (with.is_transposed)
          with.transposed->multiply(alpha, over.whole(0), beta, over.whole(1), context_.stream(), true);
        else with.ordered->multiply(alpha, over.whole(0), beta, over.whole(1), context_.stream(), true);
        over.give_back();
        return std::string();
      });
}

void GroupMatrix::update_values(const std::function<ConstDense()>& give, Stream& stream) {
  if (!context_.has_feeders()) {
    const ConstDense values = context_.ranks().run_agreed(give);
    return matrix_->update_values(values, stream);
  }
  HandOver over(context_, stream);
  context_.group().call(
      "new values",
      [&] {
        const ConstDense values = give();
        if (values.rows != own_values_ || (values.data == nullptr && own_values_ > 0))
          throw Error(ErrorKind::usage, fmt::format("{} new values came for {} values that this rank gave before",
                                                    values.data == nullptr ? 0 : values.rows, own_values_));
        over.give("the new values", values, values.type);
        std::vector<Operand> operands = over.operands();
        operands.push_back(one_value(Piece{{}, 0, values.rows, values.type}));
        return operands;
      },
      [&](std::span<const GroupOperand> all) {
        context_.group().owners().run_agreed([&] { join_pieces(all.back().as<Piece>()); });
        over.gather(all);
        matrix_->update_values(over.whole(0), context_.stream());
        context_.stream().synchronize();
        return std::string();
      });
}

void GroupMatrix::zero(DistributedMatrix& of, const ZeroedRows& given, std::span<const std::int64_t> rows) {
  Context& context = of.context();
  Communicator& owners = context.communicator();
  // A rank without rows may have no memory for x and b; the others say whether there are any.
  if (owners.all_reduce(given.with_vectors ? 1 : 0, Reduction::max) == 0)
    return of.zero_rows_columns(rows, given.diagonal, nullptr, nullptr, context.stream());
  owners.run_agreed([&] {
    if (!given.with_vectors && of.y_rows()->own_rows() > 0)
      throw Error(ErrorKind::usage, "x and b are given on other ranks");
  });
  const ValueType type = sum_type(of.type());
  DistributedVector known(of, VectorLayout::rows, type), right(of, VectorLayout::rows, type);
  known.set_own(given.x, context.stream());
  right.set_own(given.b, context.stream());
  of.zero_rows_columns(rows, given.diagonal, &known, &right, context.stream());
  right.own(given.b, context.stream());
}

void GroupMatrix::zero_rows_columns(const std::function<ZeroedRows()>& give) {
  ZeroedRows mine;
  if (!context_.has_feeders()) {
    mine = context_.ranks().run_agreed(give);
    return zero(*matrix_, mine, mine.rows);
  }
  struct Header {
    std::int64_t rows;
    double diagonal;
    bool with_vectors;
  };
  HandOver over(context_, context_.stream());
  context_.group().call(
      "zeroing rows and columns",
      [&] {
        mine = give();
        const ValueType type = sum_type(this->type());
        const bool have = mine.with_vectors && own_rows_ > 0;
        if (have)
          for (const ConstDense& view : {mine.x, ConstDense(mine.b)})
            require_shape("the entries", view, own_rows_, 1, context_.device());
        over.give("x", have ? mine.x : ConstDense(), type);
        over.give_and_take("b", have ? mine.b : Dense(), type, true);
        std::vector<Operand> operands = over.operands();
        operands.push_back({sizeof(Header),
                            [&](void* to) {
                              *static_cast<Header*>(to) = {own_rows_, mine.diagonal, mine.with_vectors};
                            },
                            {}});
        operands.push_back(Operand::given(mine.rows.data(), mine.rows.size_bytes()));
        return operands;
      },
      [&](std::span<const GroupOperand> all) {
        ZeroedRows together = mine;
        context_.group().owners().run_agreed([&] {
          const std::span<const Header> headers = all[3].as<Header>();
          together.with_vectors =
              std::any_of(headers.begin(), headers.end(), [](const Header& h) { return h.with_vectors; });
          for (const Header& header : headers)
            if (std::memcmp(&header.diagonal, &headers[0].diagonal, sizeof header.diagonal) != 0)
              throw Error(ErrorKind::usage,
                          fmt::format("diagonal is {} on one rank and {} on another; it must be the same on all ranks",
                                      headers[0].diagonal, header.diagonal),
                          "diagonal");
          for (const Header& header : headers)
            if (together.with_vectors && !header.with_vectors && header.rows > 0)
              throw Error(ErrorKind::usage, "x and b are given on other ranks");
        });
        over.gather(all);
        together.x = over.whole(0), together.b = over.whole(1);
        zero(*matrix_, together, all[4].as<std::int64_t>());
        over.give_back();
        return std::string();
      });
}

}  // namespace shardmat
