// HDF5 files as other programs write them: every layout and type that is read, and everything that is refused because it
// could read other files, memory, or more than is stored.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/hdf5/describe.h"
#include "partition/hdf5/file.h"
#include "tests/partition/test_matrices.h"

#define EXPECT_SAYS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)

namespace shardmat {
namespace {

/// Sets an environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

struct Options {
  std::vector<hsize_t> chunk;
  int deflate = 0;
  bool shuffle = false, fletcher = false, compact = false;
};

class ForeignHdf5 : public testing::Test {
 protected:
  /// Writes with the HDF5 library as its users do.
  template <class F>
  void write(F&& f, const char* name = "a.h5", bool latest = false) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate((directory_ / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    ASSERT_GE(file, 0);
    f(file);
    H5Fclose(file);
    H5Pclose(access);
  }

  static hid_t create(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, const Options& options) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (!options.chunk.empty()) H5Pset_chunk(list, static_cast<int>(options.chunk.size()), options.chunk.data());
    if (options.shuffle) H5Pset_shuffle(list);
    if (options.deflate > 0) H5Pset_deflate(list, static_cast<unsigned>(options.deflate));
    if (options.fletcher) H5Pset_fletcher32(list);
    if (options.compact) H5Pset_layout(list, H5D_COMPACT);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    EXPECT_GE(set, 0);
    H5Sclose(space), H5Pclose(list);
    return set;
  }

  /// A dataset of doubles 0.5, 1.5, … stored as `type`.
  static void put(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, const Options& options = {}) {
    const hid_t set = create(file, name, type, shape, options);
    hsize_t count = 1;
    for (const hsize_t extent : shape) count *= extent;
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), H5Tget_class(type) == H5T_FLOAT ? 0.5 : 0.0);
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(set);
  }

  std::string path(const char* name = "a.h5") const { return (directory_ / name).string(); }

  template <class F>
  static std::string error(F&& f, ErrorKind kind = ErrorKind::input) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  std::string dataset_error(const char* name = "/x") const {
    return error([&] { Hdf5File::open(path(), {name}).dataset(name); });
  }

  std::vector<double> read(const char* name, std::int64_t begin, std::int64_t count) const {
    const Hdf5Dataset set = Hdf5File::open(path(), {name}).dataset(name);
    const std::int64_t width = set.shape().size() < 2 ? 1 : set.shape()[1];
    std::vector<double> values(static_cast<std::size_t>(count * width));
    set.read(begin, count, values.data());
    return values;
  }

  static std::vector<double> numbers(double first, std::size_t count) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(ForeignHdf5, EveryLayout) {
  for (const bool latest : {false, true}) {
    write(
        [](hid_t file) {
          put(file, "contiguous", H5T_IEEE_F64LE, {1000, 3});
          put(file, "compact", H5T_IEEE_F64LE, {20, 3}, {{}, 0, false, false, true});
          put(file, "chunked", H5T_IEEE_F64LE, {1000, 3}, {{64, 2}});
          put(file, "deflate", H5T_IEEE_F64LE, {1000, 3}, {{64, 2}, 6});
          put(file, "all", H5T_IEEE_F64LE, {1000, 3}, {{333, 3}, 1, true, true});
          put(file, "fletcher", H5T_IEEE_F32BE, {1000, 3}, {{7, 3}, 0, false, true});
          put(file, "single_chunk", H5T_IEEE_F64LE, {1000, 3}, {{1000, 3}, 3});
        },
        "a.h5", latest);
    for (const char* name : {"/contiguous", "/chunked", "/deflate", "/all", "/fletcher", "/single_chunk"}) {
      EXPECT_EQ(read(name, 0, 1000), numbers(0.5, 3000)) << name;
      EXPECT_EQ(read(name, 63, 300), numbers(63 * 3 + 0.5, 900)) << name;
      EXPECT_EQ(read(name, 999, 1), numbers(999 * 3 + 0.5, 3)) << name;
      EXPECT_EQ(read(name, 5, 0).size(), 0u);
    }
    EXPECT_EQ(read("/compact", 3, 4), numbers(9.5, 12));
  }
}

/// Large chunks are kept between reads of slices.
TEST_F(ForeignHdf5, LargeChunks) {
  write([](hid_t file) { put(file, "x", H5T_IEEE_F64LE, {600000}, {{250000}, 1}); });
  const Hdf5Dataset set = Hdf5File::open(path(), {"/x"}).dataset("/x");
  std::vector<double> values(600000);
  for (std::int64_t begin = 0; begin < 600000; begin += 60000) set.read(begin, 60000, values.data() + begin);
  EXPECT_EQ(values, numbers(0.5, 600000));
}

TEST_F(ForeignHdf5, EveryNumber) {
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8BE,   H5T_STD_I16LE,  H5T_STD_I16BE, H5T_STD_U16LE,
                         H5T_STD_U16BE,  H5T_STD_I32LE,  H5T_STD_I32BE,  H5T_STD_U32LE, H5T_STD_U32BE,
                         H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64LE,  H5T_STD_U64BE, half,
                         H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
  for (const hid_t type : types) {
    write([&](hid_t file) { put(file, "x", type, {100}); });
    const bool real = H5Tget_class(type) == H5T_FLOAT;
    EXPECT_EQ(read("/x", 1, 99), numbers(real ? 1.5 : 1, 99));
    const Hdf5Dataset set = Hdf5File::open(path(), {"/x"}).dataset("/x");
    std::vector<std::int32_t> whole(100);
    if (real) EXPECT_SAYS(error([&] { set.read(0, 100, whole.data()); }), "whole");
    else set.read(0, 100, whole.data());
    EXPECT_EQ(whole[99], real ? 0 : 99);
  }
  H5Tclose(half);
  write([&](hid_t file) {
    const std::int64_t values[] = {7, std::int64_t{1} << 40, -1};
    const hid_t set = create(file, "x", H5T_STD_I64LE, {3}, {});
    H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
  });
  const Hdf5Dataset set = Hdf5File::open(path(), {"/x"}).dataset("/x");
  std::int32_t narrow[3];
  EXPECT_SAYS(error([&] { set.read(0, 3, narrow); }), "entry 1 is 1099511627776");
  std::uint64_t natural[3];
  EXPECT_SAYS(error([&] { set.read(2, 1, natural); }), "entry 2 is -1");
}

TEST_F(ForeignHdf5, AttributesAndLinksWithinTheFile) {
  write([](hid_t file) {
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    put(file, "/g/y", H5T_IEEE_F64LE, {5});
    H5Lcreate_soft("g/y", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/loop2", file, "loop1", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/loop1", file, "loop2", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/g", group, "itself", H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute = H5Acreate2(file, "text", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char* text = "häuser";
    H5Awrite(attribute, type, &text);
    H5Aclose(attribute), H5Sclose(space), H5Tclose(type), H5Gclose(group);
  });
  const Hdf5File file = Hdf5File::open(path(), {"/x", "/g/y", "/missing", "/x/below"});
  EXPECT_EQ(file.string_attribute("/", "text"), "häuser");
  EXPECT_EQ(read("/x", 0, 5), numbers(0.5, 5));
  EXPECT_EQ(read("/g/y", 0, 5), numbers(0.5, 5));
  EXPECT_EQ(file.children("/"), (std::vector<std::string>{"g", "loop1", "loop2", "x"}));
  EXPECT_TRUE(file.has("/g"));
  EXPECT_FALSE(file.has("/missing"));
  EXPECT_FALSE(file.has("/x/below"));
  EXPECT_SAYS(error([&] { Hdf5File::open(path(), {"/loop1"}); }), "links");
  EXPECT_SAYS(error([&] { Hdf5File::open(path(), {"/g"}); }), "too many objects");
}

TEST_F(ForeignHdf5, OtherFilesAreNotReadUnlessAsked) {
  std::ofstream(directory_ / "raw") << std::string(4096, 'x');
  write([](hid_t file) { put(file, "y", H5T_IEEE_F64LE, {10}); }, "other.h5");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  write([&](hid_t file) {
    H5Lcreate_external("other.h5", "/y", file, "link", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", file, "root", H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t ten = 10;
    const auto stored_in = [&](const char* name, const char* target) {
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &ten, nullptr);
      H5Pset_external(list, target, 8, 80);
      H5Dclose(H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
      H5Sclose(space), H5Pclose(list);
    };
    stored_in("storage", "raw");
    stored_in("pipe", "fifo");
    stored_in("system", "/etc/passwd");
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &ten, nullptr);
    H5Pset_virtual(list, space, "other.h5", "/y", space);
    H5Dclose(H5Dcreate2(file, "virtual", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space), H5Pclose(list);
  });
  EXPECT_SAYS(dataset_error("/link"), "/link: it is a link to /y of another file, other.h5");
  EXPECT_SAYS(dataset_error("/link"), "SHARDMAT_HDF5_LINKS=follow");
  EXPECT_SAYS(dataset_error("/root/y"), "it is a link to /y of another file, other.h5");
  EXPECT_SAYS(dataset_error("/storage"), "its data lies in another file, raw");
  EXPECT_SAYS(dataset_error("/pipe"), "another file");
  EXPECT_SAYS(dataset_error("/system"), "/etc/passwd");
  EXPECT_SAYS(dataset_error("/virtual"), "virtual dataset");
  {
    const Variable wrong("SHARDMAT_HDF5_LINKS", "yes");
    error([&] { Hdf5File::open(path("other.h5"), {"/y"}); }, ErrorKind::usage);
  }
  const Variable follow("SHARDMAT_HDF5_LINKS", "follow");
  std::ofstream(directory_ / "a.h5", std::ios::app) << ' ';  // what was found before is of another size
  EXPECT_EQ(read("/link", 2, 8), numbers(2.5, 8));
  EXPECT_EQ(read("/root/y", 2, 8), numbers(2.5, 8));
  double value = 0;
  std::memset(&value, 'x', sizeof value);
  EXPECT_EQ(read("/storage", 0, 10), std::vector<double>(10, value));
  EXPECT_SAYS(error([&] { Hdf5File::open(path(), {"/pipe"}); }), "FIFO");
  EXPECT_EQ(read("/virtual", 3, 7), numbers(3.5, 7));
  write([&](hid_t file) {  // two parts of a wider array, the second first; and one with a gap
    put(file, "y", H5T_STD_I16LE, {10, 3}, {{4, 2}, 6});
    const auto join = [&](const char* name, hsize_t rows, hsize_t begin) {
      const hsize_t shape[] = {rows, 3}, of[] = {10, 3}, five[] = {5, 3};
      const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, nullptr),
                  source = H5Screate_simple(2, of, nullptr);
      for (const hsize_t at : {begin, hsize_t{0}}) {
        const hsize_t to[] = {at, 0}, from[] = {at == 0 ? hsize_t{5} : hsize_t{0}, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, to, nullptr, five, nullptr);
        H5Sselect_hyperslab(source, H5S_SELECT_SET, from, nullptr, five, nullptr);
        H5Pset_virtual(list, space, ".", "/y", source);
      }
      H5Dclose(H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
      H5Sclose(space), H5Sclose(source), H5Pclose(list);
    };
    join("joined", 10, 5);
    join("gap", 11, 6);
  });
  EXPECT_EQ(read("/joined", 4, 2), (std::vector<double>{27, 28, 29, 0, 1, 2}));
  EXPECT_SAYS(dataset_error("/gap"), "row 5 comes from nowhere");
}

TEST_F(ForeignHdf5, OtherDriversAreRefused) {
  write([](hid_t file) { put(file, "x", H5T_IEEE_F64LE, {10}); });
  for (const char* name : {"HDF5_DRIVER", "HDF5_VOL_CONNECTOR"}) {
    const Variable set(name, "core");
    EXPECT_SAYS(error([&] { Hdf5File::open(path(), {"/x"}); }, ErrorKind::usage), name);
  }
}

/// Writes one chunk as it stands.
void put_chunk(hid_t set, std::uint32_t mask, const std::string& bytes) {
  const hsize_t origin[2] = {};
  EXPECT_GE(H5Dwrite_chunk(set, H5P_DEFAULT, mask, origin, bytes.size(), bytes.data()), 0);
  H5Dclose(set);
}

std::string deflated(std::size_t zeros) {
  std::string in(zeros, '\0'), out(zeros + 100, '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(in.data()), in.size());
  out.resize(size);
  return out;
}

TEST_F(ForeignHdf5, ChunksThatAreShortLeaveNothingOfMemory) {
  const auto chunk_error = [&](const Options& options, std::uint32_t mask, const std::string& bytes) {
    write([&](hid_t file) { put_chunk(create(file, "x", H5T_IEEE_F64LE, {100}, options), mask, bytes); });
    return error([&] { read("/x", 0, 100); });
  };
  const Options deflate{{100}, 6};
  EXPECT_SAYS(chunk_error(deflate, 1, std::string(800, 'a')), "mask 1");
  EXPECT_SAYS(chunk_error(deflate, 1, "short"), "mask 1");
  EXPECT_SAYS(chunk_error(deflate, 0, deflated(792)), "does not inflate to its 800 bytes (but to 792)");
  EXPECT_SAYS(chunk_error(deflate, 0, deflated(808)), "800 bytes");
  EXPECT_SAYS(chunk_error(deflate, 0, deflated(800).substr(0, 9)), "800 bytes");
  EXPECT_SAYS(chunk_error(deflate, 0, "no stream"), "does not inflate");
  EXPECT_SAYS(chunk_error({{100}, 0, false, true}, 0, std::string(804, 'a')), "checksum");
  EXPECT_SAYS(chunk_error({{100}, 0, true}, 0, std::string(700, 'a')), "too few");
  write([&](hid_t file) {
    put(file, "whole", H5T_IEEE_F64LE, {100}, {{10}});
    const hid_t set = create(file, "x", H5T_IEEE_F64LE, {100}, {{10}});
    put_chunk(set, 0, std::string(80, 'a'));
  });
  EXPECT_SAYS(dataset_error(), "chunk 1 was never written");
}

TEST_F(ForeignHdf5, UnknownFiltersAreNamedWithTheRemedy) {
  write([](hid_t file) {
    const hsize_t extent = 100;
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &extent, nullptr);
    H5Pset_chunk(list, 1, &extent);
    H5Pset_filter(list, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);  // LZF, which is not there
    H5Dclose(H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space), H5Pclose(list);
  });
  EXPECT_SAYS(dataset_error(), "filter 32000");
  EXPECT_SAYS(dataset_error(), "h5repack");
}

TEST_F(ForeignHdf5, DeclaredSizesAreComparedWithTheFile) {
  constexpr hsize_t kHuge = hsize_t{1} << 40;
  write([](hid_t file) {
    const auto declare = [&](const char* name, hsize_t extent, hsize_t chunk) {
      H5Dclose(create(file, name, H5T_IEEE_F64LE, {extent}, chunk == 0 ? Options{} : Options{{chunk}}));
    };
    declare("late", kHuge, 0);
    declare("chunked", kHuge, 1 << 20);
    declare("few", hsize_t{1} << 29, hsize_t{1} << 28);
    put_chunk(create(file, "bomb", H5T_IEEE_F64LE, {hsize_t{1} << 28}, {{hsize_t{1} << 28}, 6}), 0, deflated(80000));
  });
  const std::int64_t before = peak_host_memory();
  EXPECT_SAYS(dataset_error("/late"), "never written");
  EXPECT_SAYS(dataset_error("/chunked"), "more chunks than a file of");
  EXPECT_SAYS(dataset_error("/few"), "never written");
  EXPECT_SAYS(dataset_error("/bomb"), "too few");
  write([&](hid_t file) { put(file, "x", H5T_IEEE_F64LE, {100}, {{10}, 6}); });
  const Hdf5Input input{path(), {"/x"}};
  std::string text = hdf5_description_text(input), same = "\"chunks\":[";
  const std::size_t at = text.find(same), end = text.find(']', at);
  for (int i = 0; i < 10; ++i) same += fmt::format("{}0,{},0", i == 0 ? "" : ",", std::filesystem::file_size(path()) / 5);
  text.replace(at, end - at, same);
  remember_hdf5_description(input, text);
  EXPECT_SAYS(dataset_error(), "over each other");
  EXPECT_LT(peak_host_memory() - before, 64 << 20);
}

TEST_F(ForeignHdf5, WhatIsNoHdf5File) {
  const auto open_error = [&] { return error([&] { Hdf5File::open(path()); }); };
  EXPECT_SAYS(open_error(), "there is no such file");
  std::ofstream(directory_ / "a.h5") << "text";
  EXPECT_SAYS(open_error(), "cannot open it as an HDF5 file");
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_SAYS(open_error(), "FIFO");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_SAYS(open_error(), "directory");
}

TEST_F(ForeignHdf5, RanksThatAreToldAskNoHelper) {
  write([](hid_t file) { put(file, "x", H5T_IEEE_F64LE, {10}); });
  const Hdf5Input input{path(), {"/x"}};
  const std::string text = hdf5_description_text(input);
  std::ofstream(path(), std::ios::app) << ' ';  // nothing is known of this one
  const Variable nowhere("SHARDMAT_H5CHECK", "/nonexistent/h5check");
  EXPECT_SAYS(error([&] { read("/x", 0, 10); }, ErrorKind::resources), "/nonexistent/h5check");
  remember_hdf5_description(input, text);
  EXPECT_SAYS(error([&] { read("/x", 0, 10); }), "different files of this name");
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 1);
  remember_hdf5_description(input, text);
  EXPECT_EQ(read("/x", 0, 10), numbers(0.5, 10));
}

TEST_F(ForeignHdf5, DescriptionsFromElsewhereAreNotTrusted) {
  write([](hid_t file) { put(file, "x", H5T_IEEE_F64LE, {100}, {{10}, 6}); });
  const Hdf5Input input{path(), {"/x"}};
  const std::string text = hdf5_description_text(input);
  const auto told = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    remember_hdf5_description(input, changed);
    return error([&] { read("/x", 0, 100); });
  };
  EXPECT_SAYS(told("[100]", "[1152921504606846976]"), "chunks in place of");
  EXPECT_SAYS(told("[100]", "[-5]"), "shape");
  EXPECT_SAYS(told("[100]", "[100,1,1]"), "dimensions");
  EXPECT_SAYS(told("\"chunk\":[10]", "\"chunk\":[0]"), "no extent");
  EXPECT_SAYS(told("\"chunk\":[10]", "\"chunk\":[10,1]"), "dimensions");
  EXPECT_SAYS(told("\"float\",8", "\"float\",3"), "type");
  EXPECT_SAYS(told("\"float\",8", "\"float\",1"), "type");
  EXPECT_SAYS(told("[100]", "[100,1,0]"), "dimensions");
  std::string filters = "\"filters\":[";
  for (int i = 0; i < 33; ++i) filters += "[2,\"\"],";
  EXPECT_SAYS(told("\"filters\":[", filters), "34 filters");
  EXPECT_SAYS(told("\"chunks\":[", "\"chunks\":[-7,1,0,"), "in place of");
  EXPECT_SAYS(told("\"chunks\":[", "\"chunks\":[999999999,1,0],\"old\":["), "in place of");
  EXPECT_SAYS(told("\"layout\"", "\"file\":\"/etc/passwd\",\"layout\""), "names another file");
  EXPECT_SAYS(told("{\"", "[[[[[[[[[[[[{\""), "description");
  EXPECT_SAYS(told("\"kind\":\"dataset\"", "\"kind\":\"sofa\""), "sofa");
}

}  // namespace
}  // namespace shardmat
