#include "runtime/service/engine.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "kernels/base/error.h"
#include "runtime/service/control.h"
#include "runtime/service/library.h"
#include "runtime/service/resident_matrix.h"
#include "runtime/source/matrix_source.h"

namespace shardmat::service {
namespace {

using AnswerKind = decltype(Answer::what);

Hello hello_of(const Context& context) {
  Hello hello;
  hello.rank = context.communicator().rank(), hello.ranks = context.communicator().size();
  const RankPlace& place = context.placement().ranks[static_cast<std::size_t>(hello.rank)];
  hello.host = place.host, hello.device = place.device;
  return hello;
}

class Engine {
 public:
  Engine(Context& context, const EngineOptions& options)
      : context_(context),
        links_(std::filesystem::path(options.control).parent_path()),
        library_(options.library),
        control_(options.control, hello_of(context)) {}

  void run() {
    for (bool going_on = true; going_on;) {
      const Command command = control_.next();
      going_on = !std::holds_alternative<Quit>(command.what);
      AnswerKind answer;
      try {
        answer = std::visit([&](const auto& what) { return carry_out(what); }, command.what);
      } catch (const AgreedError& error) {
        answer = Failed{error.kind(), error.what()};
      }
      control_.answer(std::move(answer));
    }
  }

 private:
  AnswerKind carry_out(const Load& load) {
    const ContextScope scope(context_);
    Communicator& ranks = context_.communicator();
    std::optional<LibraryFile> file;
    ranks.together([&] { file.emplace(library_, load.source, link_directory(ranks.rank())); });
    try {
      const MatrixSource source = open_matrix(file->path().string(), context_);
      auto matrix = std::make_unique<ResidentMatrix>(source, context_, load);
      return (matrices_[load.matrix] = std::move(matrix))->description();
    } catch (const AgreedError& error) {
      throw AgreedError(error.kind(), without_links(error.what(), load.source), error.setting());
    }
  }

  AnswerKind carry_out(const Unload& unload) {
    const ContextScope scope(context_);
    matrices_.erase(unload.matrix);
    return Done{};
  }

  AnswerKind carry_out(const Multiply& multiply) {
    const ContextScope scope(context_);
    const auto matrix = matrices_.find(multiply.matrix);
    if (matrix == matrices_.end()) throw AgreedError(ErrorKind::internal, "the ranks do not have this matrix");
    return matrix->second->multiply(multiply, control_.arena());
  }

  AnswerKind carry_out(const Ping&) { return Done{}; }
  AnswerKind carry_out(const Quit&) { return Done{}; }

  std::filesystem::path link_directory(int rank) const { return links_ / fmt::format("rank-{}", rank); }

  /// A message about a file names it as the library does.
  std::string without_links(std::string message, const std::string& source) const {
    for (int rank = 0; rank < context_.communicator().size(); ++rank) {
      const std::string link = (link_directory(rank) / std::filesystem::path(source).filename()).string();
      for (std::size_t at = message.find(link); at != std::string::npos; at = message.find(link, at + source.size()))
        message.replace(at, link.size(), source);
    }
    return message;
  }

  Context& context_;
  std::filesystem::path links_;
  Library library_;
  std::map<std::uint64_t, std::unique_ptr<ResidentMatrix>> matrices_;
  Control control_;
};

}  // namespace

void run_engine(Context& context, const EngineOptions& options) { Engine(context, options).run(); }

}  // namespace shardmat::service
