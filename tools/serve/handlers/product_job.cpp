#include "tools/serve/handlers/product_job.h"

#include <utility>
#include <variant>

namespace shardmat::serve {

ProductJob::ProductJob(Service& service, std::shared_ptr<MultiplyRequest> request, std::uint64_t body_bytes)
    : service_(service), product_(std::move(request)), body_(service, product_->x, body_bytes) {}

ProductJob::~ProductJob() {
  product_->done = nullptr;
  if (number_ != 0) service_.dispatcher().cancel(number_);
}

void ProductJob::put_in_line(Matrix& matrix, std::function<void(const MultiplyResult&)> done) {
  product_->done = [this, done](const MultiplyResult& result) {
    number_ = 0;
    done(result);
  };
  auto added = service_.dispatcher().add(matrix, product_);
  if (auto* problem = std::get_if<Problem>(&added)) {
    MultiplyResult refused;
    refused.problem = std::move(*problem);
    product_->done = nullptr;
    return done(refused);
  }
  if (product_->done) number_ = std::get<std::uint64_t>(added);
}

}  // namespace shardmat::serve
