#include "runtime/source/kept_rows.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/error.h"

namespace shardmat {
namespace {

class KeptSource final : public RowSource {
 public:
  explicit KeptSource(KeptRows kept)
      : name_(std::move(kept.name)),
        rows_(kept.rows),
        cols_(kept.part.cols),
        begin_(kept.begin),
        end_(kept.begin + kept.part.rows),
        share_begin_(kept.share_begin),
        share_lengths_(std::move(kept.share_lengths)),
        node_block_size_(kept.node_block_size),
        order_(kept.order),
        originals_(std::move(kept.originals)),
        unknowns_(std::move(kept.unknowns)),
        part_(make_memory_source(std::make_shared<const HostCsr>(std::move(kept.part)), name_)) {}

  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  std::string name() const override { return name_; }

  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    if (begin == end) return {};
    const std::int64_t share_end = share_begin_ + std::ssize(share_lengths_);
    if (begin < share_begin_ || end > share_end) {
      require_own(begin, end);
      return part_->row_lengths(begin - begin_, end - begin_);
    }
    const auto first = share_lengths_.begin() + (begin - share_begin_);
    return HostVector<std::int64_t>(first, first + (end - begin));
  }

  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    if (begin == end) return part_->read_rows(0, 0);
    require_own(begin, end);
    return part_->read_rows(begin - begin_, end - begin_);
  }

  void visit_rows(std::int64_t begin, std::int64_t end, const std::function<void(const CsrView&)>& use) const override {
    if (begin == end) return part_->visit_rows(0, 0, use);
    require_own(begin, end);
    part_->visit_rows(begin - begin_, end - begin_, use);
  }

  std::shared_ptr<const UnknownList> unknowns() const override { return unknowns_; }
  std::int64_t node_block_size() const override { return node_block_size_; }
  RowOrder row_order() const override { return order_; }
  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const override {
    if (!permuted()) return RowSource::permutation(begin, end);
    if (begin == end) return {};
    require_own(begin, end);
    const auto first = originals_.begin() + (begin - begin_);
    return HostVector<std::int64_t>(first, first + (end - begin));
  }

 private:
  void require_own(std::int64_t begin, std::int64_t end) const {
    if (begin < begin_ || begin > end || end > end_)
      throw Error(ErrorKind::internal, fmt::format("{}: rows [{}, {}) are asked of a rank that keeps rows [{}, {})", name_,
                                                   begin, end, begin_, end_));
  }

  std::string name_;
  std::int64_t rows_, cols_, begin_, end_, share_begin_;
  HostVector<std::int64_t> share_lengths_;
  std::int64_t node_block_size_;
  RowOrder order_;
  HostVector<std::int64_t> originals_;
  std::shared_ptr<const UnknownList> unknowns_;
  std::unique_ptr<RowSource> part_;
};

}  // namespace

std::unique_ptr<RowSource> make_kept_source(KeptRows kept) { return std::make_unique<KeptSource>(std::move(kept)); }

}  // namespace shardmat
