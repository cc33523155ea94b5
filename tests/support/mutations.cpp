#include "tests/support/mutations.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"

// HDF5 1.10 leaks 312 bytes each time it meets a damaged object header.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardmat::test {
namespace {

std::int64_t executions = 0;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

const char* const kWords[] = {"-1",    "0",     "99999999999", "9223372036854775807",
                              "nan",   "1e999", "1e30",        "18446744073709551616",
                              "\n",    "\r",    " ",           "%",
                              "\n\n",  "[[[[",  "{\"a\":",     "1 1 1\n",
                              "array", "null",  "symmetric",   "pattern"};

void change_once(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size() + 1),
                    length = below(random, std::min<std::size_t>(9, bytes.size() - at + 1));
  switch (below(random, 8)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(at, bytes.substr(below(random, bytes.size()), length));
      break;
    case 4:
      bytes.insert(at, kWords[below(random, std::size(kWords))]);
      break;
    case 5:
      bytes.replace(at, length, kWords[below(random, std::size(kWords))]);
      break;
    case 6:  // a binary number, all ones or zeros
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, below(random, 2) == 0 ? '\0' : '\xff');
      if (length > 0 && below(random, 2) == 0) bytes[at + length - 1] = '\x7f';
      break;
    default:
      if (below(random, 8) == 0) bytes.resize(at);
      break;
  }
}

/// One to four changes: a bit, a byte, a span removed, repeated or replaced, a number made extreme, the end cut off.
std::string mutated(std::string bytes, Random& random) {
  for (std::size_t changes = 1 + below(random, 4); changes > 0; --changes) change_once(bytes, random);
  return bytes;
}

Path folder_in_memory() {
  const Path shared = "/dev/shm";
  return ::access(shared.c_str(), W_OK | X_OK) == 0 ? shared : std::filesystem::temp_directory_path();
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T number = 0;
  if (at <= bytes.size() && bytes.size() - at >= sizeof number) std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

int number_in(const char* variable, int usual) {
  const char* const asked = std::getenv(variable);
  return asked == nullptr ? usual : std::max(0, std::atoi(asked));
}

}  // namespace

int mutation_count(int usual) { return std::max(1, number_in("TEST_FUZZ_COUNT", usual)); }

std::string with_zip_checksums(std::string archive) {
  constexpr std::size_t kEntry = 46, kLocal = 30;  // bytes of the headers without names
  for (std::size_t at = 0; (at = archive.find("PK\x01\x02", at)) != std::string::npos && archive.size() - at >= kEntry;
       at += 4) {
    const std::size_t local = number_at<std::uint32_t>(archive, at + 42), size = number_at<std::uint32_t>(archive, at + 20);
    const std::size_t begin =
        local + kLocal + number_at<std::uint16_t>(archive, local + 26) + number_at<std::uint16_t>(archive, local + 28);
    if (number_at<std::uint16_t>(archive, at + 10) != 0 || begin > archive.size() || size > archive.size() - begin) continue;
    const auto sum = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(archive.data() + begin), static_cast<uInt>(size)));
    std::memcpy(archive.data() + at + 16, &sum, sizeof sum);
    std::memcpy(archive.data() + local + 14, &sum, sizeof sum);
  }
  return archive;
}

MutationTest::MutationTest() : FilesTest(folder_in_memory()), one_thread_(1) {}

MutationTest::~MutationTest() = default;

void MutationTest::TearDownTestSuite() {
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(peak_host_memory(), 1'000'000'000);
#endif
  std::cout << executions << " mutations in all\n";
}

void MutationTest::mutate(const std::string& name, const std::vector<std::string>& seeds, const Read& read, const Pack& pack,
                          int usual) {
  const auto read_file = [&](const std::string& bytes) {
    const Path file = write(name, pack ? pack(bytes) : bytes);
    try {
      read(file);
    } catch (const Error& e) {
      EXPECT_SAYS(std::string(e.what()), name);
      throw;
    }
  };
  mutate_text(name, seeds, read_file, usual);
}

void MutationTest::mutate_text(const std::string& name, const std::vector<std::string>& seeds,
                               const std::function<void(const std::string&)>& read, int usual) {
  Random random(20240601);
  int accepted = 0;
  const int first = number_in("TEST_FUZZ_FIRST", 0), count = mutation_count(usual);
  for (int i = 0; i < first + count; ++i) {
    const std::string bytes = mutated(seeds[static_cast<std::size_t>(i) % seeds.size()], random);
    if (i < first) continue;
    try {
      read(bytes);
      ++accepted;
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::input || e.kind() == ErrorKind::resources) << e.what();
      EXPECT_LT(std::strlen(e.what()), 1000U) << e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "mutation " << i << " of " << name << ": " << e.what();
    }
  }
  executions += count;
  EXPECT_LT(accepted, count);
}

}  // namespace shardmat::test
