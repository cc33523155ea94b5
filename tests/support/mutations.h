// Mutations of small valid files, with fixed seeds: each must be read or refused with an Error about the input or about
// memory; a crash, another exception or a large allocation is a bug. A program of such tests is one line in CMake:
// shardmat_fuzz_test(). TEST_FUZZ_COUNT=N in the environment makes N mutations of each test instead of its usual few
// thousand, and TEST_FUZZ_FIRST=M leaves out the first M, so that processes share a long count or one mutation is repeated;
// with -DSHARDMAT_FUZZ=ON the sanitizers watch (tests/run.sh --label long does both).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/parallel.h"
#include "tests/partition/readers/test_files.h"

namespace shardmat::test {

/// Mutations of each test: `usual`, or what TEST_FUZZ_COUNT says.
int mutation_count(int usual);

/// Sets the checksums of the stored members of a zip archive to what they hold, so that a reader gets to see the mutations.
std::string with_zip_checksums(std::string archive);

class MutationTest : public FilesTest {
 protected:
  using Read = std::function<void(const Path&)>;
  using Pack = std::function<std::string(std::string)>;

  /// Files lie in memory where the machine has a folder for that.
  MutationTest();
  ~MutationTest() override;
  /// No file of this size needs much: with sanitizers, which need more, they watch.
  static void TearDownTestSuite();

  /// Writes mutations of the seeds in turn to the file `name`, and reads it. The message of an Error must hold the file's
  /// name. `pack` is applied to what was mutated. Makes mutation_count(usual) mutations.
  void mutate(const std::string& name, const std::vector<std::string>& seeds, const Read& read, const Pack& pack = {},
              int usual = 4000);
  /// The same without files: reads the mutations themselves.
  static void mutate_text(const std::string& name, const std::vector<std::string>& seeds,
                          const std::function<void(const std::string&)>& read, int usual);

 private:
  ThreadCount one_thread_;  ///< these files are too small to wait for threads
};

}  // namespace shardmat::test
