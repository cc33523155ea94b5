// The program that `shardmat bench … --peers` starts: it multiplies with other libraries, in a process of its own, so that
// neither their threads nor their MPI meet ours. peer.h describes the dialogue.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tools/bench/peers/peer.h"
#include "tools/bench/peers/resident_memory.h"

namespace shardmat::peers {

void require_symmetric(const Operands& a) {
  if (a.rows() != a.cols()) throw Refused("the matrix is not square");
  std::vector<int> next(a.row_ptr().begin(), a.row_ptr().end() - 1);  // per row j: its next entry, as i ascends
  const auto* values = reinterpret_cast<const char*>(a.is_f64() ? static_cast<const void*>(a.values<double>().data())
                                                                : a.values<float>().data());
  const auto width = static_cast<std::size_t>(a.sizes().value_bytes);
  const auto same = [&](int k, int l) {
    return std::memcmp(values + static_cast<std::size_t>(k) * width, values + static_cast<std::size_t>(l) * width, width) ==
           0;
  };
  for (int i = 0; i < a.rows(); ++i)
    for (int k = a.row_ptr()[i]; k < a.row_ptr()[i + 1]; ++k) {
      const int j = a.col_idx()[k], l = next[static_cast<std::size_t>(j)]++;
      if (l >= a.row_ptr()[j + 1] || a.col_idx()[l] != i || !same(k, l))
        throw Refused("the matrix is not symmetric: see row " + std::to_string(i) + ", column " + std::to_string(j));
    }
}

void require_one_column(const Operands& a) {
  if (a.columns() != 1) throw Refused("measured with one column only");
}

namespace {

std::vector<PeerKind> all_peers() {
  std::vector<PeerKind> all;
  const auto add = [&](std::span<const PeerKind> some) { all.insert(all.end(), some.begin(), some.end()); };
#ifdef SHARDMAT_PEER_MKL
  add(mkl_peers());
#endif
#ifdef SHARDMAT_PEER_PETSC
  add(petsc_peers());
#endif
#ifdef SHARDMAT_PEER_EIGEN
  add(eigen_peers());
#endif
#ifdef SHARDMAT_PEER_DUNE
  add(dune_peers());
#endif
#ifdef SHARDMAT_PEER_LIBRSB
  add(librsb_peers());
#endif
  return all;
}

const char* name(Parallel parallel) {
  return parallel == Parallel::serial ? "serial" : parallel == Parallel::threads ? "threads" : "ranks";
}

class Program {
 public:
  explicit Program(clockid_t clock) : clock_(clock), kinds_(all_peers()) {}
  ~Program() { unmap(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, argument;
    words >> verb;
    std::getline(words >> std::ws, argument);
    try {
      if (verb == "list") return list();
      if (verb == "open") return open(argument);
      if (verb == "prepare") return prepare(argument);
      if (verb == "run") return run(std::stoll(argument));
      if (verb == "set_up") return set_up(argument);
      if (verb == "solve") return solve();
      if (verb == "history") return history();
      if (verb == "refresh") return refresh();
      if (verb == "result") return peer_->store_result(), "ok";
      if (verb == "drop") return peer_.reset(), "ok";
    } catch (const std::exception& error) {
      return std::string("no ") + error.what();
    }
    return "no such request: " + line;
  }

 private:
  std::string list() const {
    std::string text = "ok " + std::to_string(kinds_.size());
    for (const PeerKind& kind : kinds_)
      text += std::string("\n") + kind.name + "\t" + kind.heading + "\t" + (kind.symmetric ? "symmetric" : "full") + "\t" +
              name(kind.parallel) + "\t" + (kind.preconditioner != nullptr ? kind.preconditioner : "product");
    return text;
  }

  std::string open(const std::string& path) {
    peer_.reset();
    unmap();
    const int file = ::open(path.c_str(), O_RDWR);
    OperandsHeader header;
    if (file < 0 || ::read(file, &header, sizeof header) != static_cast<ssize_t>(sizeof header))
      return "no cannot read " + path + ": " + std::strerror(errno);
    void* block =
        ::mmap(nullptr, static_cast<std::size_t>(header.bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    ::close(file);
    if (block == MAP_FAILED) return "no cannot map " + path + ": " + std::strerror(errno);
    block_ = static_cast<std::byte*>(block), bytes_ = static_cast<std::size_t>(header.bytes);
    return "ok";
  }

  std::string prepare(const std::string& wanted) {
    peer_.reset();
    if (block_ == nullptr) return "no operands are open";
    for (const PeerKind& kind : kinds_)
      if (kind.name == wanted) {
        peer_ = kind.make(Operands(block_));
        return "ok " + peer_->detail;
      }
    return "no peer is called " + wanted;
  }

  std::string run(long long products) {
    peer_->multiply();
    const double start = now();
    for (long long i = 0; i < products; ++i) peer_->multiply();
    char text[40];
    std::snprintf(text, sizeof text, "ok %.9e", now() - start);
    return text;
  }

  std::string set_up(const std::string& text) {
    std::istringstream words(text);
    SolveRequest request;
    words >> request.method >> request.rtol >> request.most;
    if (!words) return "no set_up needs a method, a tolerance and a number of iterations";
    peer_->forget();
    const long long before = resident_bytes();
    const double seconds = timed([&] { peer_->set_up(request); });
    return answer_of(seconds, std::max(0LL, resident_bytes() - before));
  }
  std::string solve() {
    int iterations = 0;
    const double seconds = timed([&] { iterations = peer_->solve(); });
    return answer_of(seconds, iterations);
  }
  std::string history() const {
    std::string text = "ok";
    char word[20];
    for (const double norm : peer_->history()) {
      std::snprintf(word, sizeof word, " %.5e", norm);
      text += word;
    }
    return text;
  }
  std::string refresh() {
    return answer_of(timed([&] { peer_->refresh(); }), 0);
  }

  static std::string answer_of(double seconds, long long number) {
    char text[60];
    std::snprintf(text, sizeof text, "ok %.9e %lld", seconds, number);
    return text;
  }
  template <class F>
  double timed(const F& work) {
    peer_->meet();
    const double start = now();
    work();
    return now() - start;
  }

  double now() const {
    timespec time{};
    ::clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  void unmap() {
    if (block_ != nullptr) ::munmap(block_, bytes_);
    block_ = nullptr;
  }

  clockid_t clock_;
  std::vector<PeerKind> kinds_;
  std::byte* block_ = nullptr;
  std::size_t bytes_ = 0;
  std::unique_ptr<Peer> peer_;
};

/// Connects to a socket of the abstract namespace, whose listener may still be starting; -1 if there is none in time.
int connect_to(const char* name) {
  constexpr int kTenths = 600;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(std::strlen(name), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name, length);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  for (int tenth = 0; tenth < kTenths; ++tenth) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return socket;
    ::close(socket);
    ::usleep(100'000);
  }
  return -1;
}

int serve(const char* socket_name, clockid_t clock) {
  const int socket = connect_to(socket_name);
  if (socket < 0) {
    std::cerr << "shardmat-peers: nobody listens at " << socket_name << "\n";
    return 4;
  }
  const auto say = [&](const std::string& text) {
    const std::string whole = text + "\n";  // the socket waits until all is sent
    return ::send(socket, whole.data(), whole.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(whole.size());
  };
  Program program(clock);
  std::string request;  // one at a time: the bench waits for each answer
  char part[4096];
  bool open = say("hello " + std::to_string(::getpid()));
  while (open) {
    const ssize_t bytes = ::recv(socket, part, sizeof part, 0);
    if (bytes <= 0) break;
    request.append(part, static_cast<std::size_t>(bytes));
    if (request.back() != '\n') continue;
    request.pop_back();
    open = say(program.answer(request));
    request.clear();
  }
  ::close(socket);
  return 0;
}

}  // namespace
}  // namespace shardmat::peers

int main(int argc, char** argv) {
  if (argc != 3 || (std::strcmp(argv[2], "cpu") != 0 && std::strcmp(argv[2], "wall") != 0)) {
    std::cerr << "shardmat-peers is started by `shardmat bench … --peers`: shardmat-peers SOCKET cpu|wall\n";
    return 2;
  }
  const int code =
      shardmat::peers::serve(argv[1], std::strcmp(argv[2], "cpu") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
#ifdef SHARDMAT_PEER_PETSC
  shardmat::peers::end_petsc();
#endif
  return code;
}
