// Dense matrices of the caller in one call of a group: the owner puts together what its ranks give, and they take back what
// it made.
//
//   memory of the host               the rank copies it to and from the memory that the group shares
//   memory of a GPU by cudaMalloc()  the owner opens it (CUDA IPC) and copies on the GPU
//   other memory of a GPU            no other process can open pools of cudaMallocAsync(), memory of cuMemCreate() and
//                                    managed memory: the rank copies it as memory of the host
//
// What must be converted to another type goes through the shared memory, too. Ranks may differ in where their memory lies:
// if that of any rank of a group is copied on the GPU, the whole lies there, else on the host.
//
//   HandOver over(context, stream);
//   group.call("…", [&] { over.give("X", x, type); over.give_and_take("Y", y, type, true); return over.operands(); },
//              [&](auto all) { over.gather(all); work on over.whole(0), over.whole(1); over.give_back(); return …; });
//
// Threads: one thread of each rank.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/shared_gpu/rank_group.h"
#include "kernels/base/dense.h"
#include "kernels/base/device.h"
#include "runtime/shared_gpu/group_context.h"

namespace shardmat {

/// One call on one rank. The context and the matrices must live until the call has returned.
class HandOver {
 public:
  /// `stream`: memory of a GPU is read when the stream has passed the work given to it so far. The stream of a feeder's
  /// context stands for the default streams of the process.
  HandOver(GroupContext& context, Stream& stream) : context_(context), stream_(stream) {}
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  /// A matrix of at most kMost in a call, whose entries become `type`. `what` names it in messages. Throws Error(usage) for
  /// memory of another GPU than the owner's, Error(input) for values beyond the range of `type`. REQUIRES: its shape was
  /// checked, and all ranks give as many columns.
  void give(std::string_view what, const ConstDense& view, ValueType type);
  /// The same, and taken back; `read`: its entries are handed over. Taking back throws Error(input) for values beyond the
  /// range of the view's type.
  void give_and_take(std::string_view what, const Dense& view, ValueType type, bool read);

  static constexpr std::size_t kMost = 2;
  /// The operands of the call: as many as matrices, and one.
  std::vector<Operand> operands();

  /// On the owner: puts the matrices together. `all`: what became of operands(). Collective over the owners; the same error
  /// on all of them.
  void gather(std::span<const GroupOperand> all);
  /// On the owner: the matrix of the group, row by row without gaps.
  Dense whole(std::size_t index) const { return wholes_[index]; }
  /// On the owner: brings results to where the ranks take them, in the order of the context's stream, and waits.
  void give_back();

 private:
  enum class Place { host, opened, own };
  /// What a rank says of a matrix.
  struct Piece {
    std::int64_t rows = 0, columns = 0, leading = 0;
    DenseOrder order = DenseOrder::row_major;
    ValueType type = ValueType::f64;
    Place place = Place::host;
    SharedAllocations::Name allocation;
    std::uint64_t offset = 0;  ///< in the allocation
    bool read = false, taken = false;
  };
  struct Note {
    Piece pieces[kMost];
    std::uint64_t kept_count = 0, kept[SharedAllocations::kMost] = {};  ///< allocations that the owner may keep open
  };

  void add(std::string_view what, const Dense& given, ValueType type, bool read, bool taken);
  void add_converted(std::string_view what, const Dense& view, const Piece& piece);
  void wait_for_caller();
  Dense gather_on_device(std::size_t index);
  template <class F>
  void for_pieces(std::size_t index, const Dense& whole, const F& f) const;

  GroupContext& context_;
  Stream& stream_;
  bool waited_ = false;  ///< for the caller's stream
  Note mine_;
  std::vector<Dense> views_;
  std::vector<Operand> operands_;
  std::span<const Note> notes_;  ///< of the ranks of the group; none on the host
  std::span<const GroupOperand> all_;
  std::vector<Dense> wholes_;
};

}  // namespace shardmat
