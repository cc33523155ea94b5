// What requests for one product have in common: their body goes into the arena, they wait in line, and are answered once.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tools/serve/handlers/arriving_body.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/ranks/service.h"

namespace shardmat::serve {

class ProductJob : public Job {
 public:
  /// The client has left, or has its answer. The arena keeps the vectors of a product that is under way.
  ~ProductJob() override;
  ProductJob(const ProductJob&) = delete;
  ProductJob& operator=(const ProductJob&) = delete;

  std::span<std::byte> body() override { return body_.piece(); }
  std::uint64_t rest() const override { return body_.rest(); }
  void take_piece(Next next) override { next(body_.take_piece()); }
  double deadline() const override { return product_->deadline; }

 protected:
  /// The request's x has room for a body of so many bytes. REQUIRES: the service outlives this object.
  ProductJob(Service& service, std::shared_ptr<MultiplyRequest> request, std::uint64_t body_bytes);
  /// Asks for the product. `done` gets what became of it, now or later, but not after the end of this object.
  void put_in_line(Matrix& matrix, std::function<void(const MultiplyResult&)> done);

  Service& service_;
  std::shared_ptr<MultiplyRequest> product_;
  ArrivingBody body_;

 private:
  std::uint64_t number_ = 0;  ///< in line; 0: not there
};

}  // namespace shardmat::serve
