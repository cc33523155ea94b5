#include "runtime/service/wire/command.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace shardmat::service {
namespace {

std::vector<Command> all_commands() {
  return {{1, Load{7, "a/b.h5", ValueType::f32, "halo", "rbp_csr", "local", true, true}},
          {2, Unload{7}},
          {std::numeric_limits<std::uint64_t>::max(),
           Multiply{7, 4, {{{0, 0}, {3, 64}, 1, 0}, {{0, std::uint64_t{1} << 40}, {0, 8}, -0.5, 2}}, 5, 6, true}},
          {4, Ping{}},
          {5, Quit{}},
          {6, PutValues{7, 100, 10, 64}},
          {7, DropValues{7}},
          {8, MakeVector{9, 7, true, 12, 3, ValueType::f32, false}},
          {9, WriteVector{9, 64}},
          {10, ReadVector{9, 128, 4}},
          {11, DropVector{9}},
          {12, Attach{3, 1 << 20}},
          {13, Detach{3}},
          {14, Adopt{7}},
          {16, MultiplyBatches{{{{2, 5, 6, 9, 3, ValueType::f32}, 64, 1 << 20}, {{1, 1, 1, 0}, 0, 128}}}},
          {15, Begin{3,
                     "solve",
                     7,
                     8,
                     4,
                     "solver=cg rtol=1e-10",
                     true,
                     true,
                     5,
                     {{9, 2, {0, 64, 1}, {0, 1 << 20, 0}}, {10, 1, {}, {}}}}},
          {16, Slice{3, 12, true, true, {1 << 20, 64}}},
          {17, Cancel{3}},
          {18, DropSolvers{}},
          {19, Spy{7}},
          {0, Invite{{"10.0.0.1", "fd00::1"}, 40001, "greeting", "secret", 1 << 20}}};
}

std::vector<Answer> all_answers() {
  Loaded loaded;
  loaded.rows = 3, loaded.cols = std::int64_t{1} << 40, loaded.nnz = 5, loaded.bytes = 9;
  loaded.kernel = "csr_host", loaded.exchange = "none", loaded.widths = {{1, 1e-6, 100}, {2, 1.5e-6, 150}};
  loaded.why = "measured";
  loaded.update_bytes = 20, loaded.solve_bytes = 30, loaded.transposable = false, loaded.x_distribution = 1,
  loaded.y_distribution = 2;
  return {{0, Hello{kProtocolVersion,
                    1,
                    2,
                    "host",
                    "CPU",
                    true,
                    4,
                    "0-3",
                    true,
                    true,
                    "secret",
                    {{"solve", {"rtol"}}},
                    1e10,
                    1 << 30}},
          {1, loaded},
          {2, Multiplied{1, 2, 3, 4}},
          {3, Failed{ErrorKind::resources, "no room", 5}},
          {4, Done{}},
          {5, Alive{}},
          {6, VectorMade{12, 96, 2, 1000}},
          {7, Begun{{{12, 96, 2, 1000}, {12, 192, 2, 0}}}},
          {8, Progress{12,
                       0.25,
                       true,
                       0.5,
                       "{}",
                       {{"rtol=1e-9", 8, "cg", "multigrid", "3 levels", 77}},
                       {{1, {2.5, 3}}, {2, {0.5, 1}}},
                       true,
                       {{true, 2, 1e-9, "{}", "why"}}}},
          {9, Density{2, 3, {1, 2, 3, 4, 5, std::uint64_t{1} << 40}}}};
}

TEST(Command, EveryMessageComesBackAsItWas) {
  for (const Command& command : all_commands()) EXPECT_EQ(decode_command(encode(command)), command);
  for (const Answer& answer : all_answers()) EXPECT_EQ(decode_answer(encode(answer)), answer);
}

TEST(Command, ShortAndLongMessagesAreRefused) {
  for (const Command& command : all_commands()) {
    std::vector<std::byte> bytes = encode(command);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THROW(decode_command(std::span(bytes).first(size)), Error) << size;
    bytes.push_back(std::byte{0});
    EXPECT_THROW(decode_command(bytes), Error);
  }
}

TEST(Command, ChangedBytesAreReadOrRefusedAndTakeNoMemory) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const std::vector<Answer> answers = all_answers();
    std::vector<std::byte> bytes = encode(answers[random() % answers.size()]);
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try {
      const Answer answer = decode_answer(bytes);
      EXPECT_EQ(encode(answer).size(), bytes.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  }
}

}  // namespace
}  // namespace shardmat::service
