#include "partition/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "kernels/base/error.h"
#include "partition/files/output_file.h"
#include "partition/hdf5/writer.h"
#include "tests/partition/test_matrices.h"

namespace shardmat {
namespace {

using Names = std::vector<std::string>;

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFile, LongNamesHaveShorterTemporaries) {
  const test::TemporaryDirectory directory;
  const std::string same(247, 'n'), umlauts = "a" + [] {
    std::string text;
    for (int i = 0; i < 126; ++i) text += "ü";
    return text;
  }();
  const AtomicFile one(directory / (same + "1.h5")), two(directory / (same + "2.h5")), three(directory / umlauts);
  for (const AtomicFile* file : {&one, &two, &three}) {
    EXPECT_LE(file->temporary().filename().string().size(), 255u - sizeof(".XXXXXX"));
    write(file->temporary(), "text");
    EXPECT_TRUE(std::filesystem::exists(file->temporary()));
  }
  EXPECT_NE(one.temporary(), two.temporary());
  EXPECT_EQ(three.temporary().filename().string().find("\xC3~"), std::string::npos);  // half a letter
  EXPECT_THROW(AtomicFile(directory / std::string(256, 'n')), Error);
}

TEST(AtomicFile, AppearsOnCommitOnly) {
  const test::TemporaryDirectory directory;
  {
    AtomicFile file(directory / "a.h5");
    write(file.temporary(), "new");
    EXPECT_FALSE(std::filesystem::exists(directory / "a.h5"));
    file.commit();
  }
  EXPECT_EQ(directory.files(), Names{"a.h5"});
  EXPECT_EQ(read(directory / "a.h5"), "new");
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const test::TemporaryDirectory directory;
  write(directory / "a.h5", "old");
  {
    AtomicFile file(directory / "a.h5");
    write(file.temporary(), "half");
  }
  EXPECT_EQ(directory.files(), Names{"a.h5"});
  EXPECT_EQ(read(directory / "a.h5"), "old");
}

TEST(AtomicFile, UnfinishedFilesAreRemovedBeforeTheProcessEnds) {
  const test::TemporaryDirectory directory;
  AtomicFile finished(directory / "a.h5"), unfinished(directory / "b.h5");
  { const AtomicFile gone(directory / "c.h5"); }
  write(finished.temporary(), "a");
  finished.commit();
  write(unfinished.temporary(), "b");
  remove_unfinished_files();
  EXPECT_EQ(directory.files(), Names{"a.h5"});
}

TEST(AtomicFile, LinksStayAndLeadToTheNewFile) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "there");
  std::filesystem::create_symlink("there/b.h5", directory / "c.h5");
  std::filesystem::create_symlink("c.h5", directory / "a.h5");
  for (const char* text : {"nothing was there", "old"}) {
    AtomicFile file(directory / "a.h5");
    write(file.temporary(), text);
    file.commit();
    EXPECT_EQ(read(directory / "there/b.h5"), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "a.h5"));
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "c.h5"));
}

TEST(AtomicFile, DevicesAndPipesStayWhatTheyAre) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const bool commit : {true, false}) {
    AtomicFile file(pipe);
    EXPECT_EQ(file.temporary(), pipe);
    if (commit) file.commit();
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  remove_unfinished_files();
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(AtomicFile, WritesNoFileAndFollowsNoLinkThatIsThereAlready) {
  const test::TemporaryDirectory directory;
  write(directory / "victim", "untouched");
  const std::string first = "." + std::string("a.h5.") + std::to_string(::getpid());
  std::filesystem::create_symlink("victim", directory / (first + ".tmp"));
  write(directory / (first + ".2.tmp"), "of another process");
  {
    AtomicFile file(directory / "a.h5");
    EXPECT_EQ(file.temporary(), directory / (first + ".3.tmp"));
    OutputFile out(file);
    out.append("new");
    out.close();
    file.commit();
  }
  EXPECT_EQ(read(directory / "a.h5"), "new");
  EXPECT_EQ(read(directory / "victim"), "untouched");
  EXPECT_EQ(read(directory / (first + ".2.tmp")), "of another process");
}

TEST(AtomicFile, AWriterFollowsNoLinkThatTookThePlaceOfTheTemporary) {
  const test::TemporaryDirectory directory;
  write(directory / "victim", "untouched");
  const AtomicFile file(directory / "a.h5");
  std::filesystem::remove(file.temporary());
  std::filesystem::create_symlink("victim", file.temporary());
  EXPECT_THROW(OutputFile{file}, Error);
  EXPECT_THROW(Hdf5Writer{file}, Error);
  EXPECT_EQ(read(directory / "victim"), "untouched");
}

TEST(AtomicFile, NamesMissingDirectory) {
  const test::TemporaryDirectory directory;
  try {
    AtomicFile file(directory / "no/such/a.h5");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("no/such"), std::string::npos);
  }
  EXPECT_THROW(AtomicFile(directory / "."), Error);
}

}  // namespace
}  // namespace shardmat
