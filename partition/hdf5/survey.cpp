#include "partition/hdf5/survey.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "partition/hdf5/input_driver.h"
#include "partition/hdf5/library.h"

namespace shardmat {
namespace {

constexpr std::int64_t kMostObjects = 100'000, kMostAttributeBytes = 16 << 20, kMostChunks = 4 << 20;
constexpr int kMostLinks = 16, kMostDimensions = 8;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::input, what); }

template <class Call>
auto get(const std::string& object, const char* what, Call&& call) {
  return checked_hdf5(ErrorKind::input, object, what, std::forward<Call>(call));
}

/// The type of 2 bytes that IEEE 754 and NumPy have and HDF5 1.10 has no name for.
hid_t half_type(hid_t like) {
  const hid_t type = H5Tcopy(like);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

const char* class_name(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return "numbers of a size that no machine has";
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "an enumeration, as of booleans";
    case H5T_REFERENCE:
      return "references";
    case H5T_ARRAY:
    case H5T_VLEN:
      return "lists";
    default:
      return "no numbers";
  }
}

Hdf5Number number_of(hid_t type) {
  using Kind = Hdf5Number::Kind;
  const hid_t half_little = half_type(H5T_IEEE_F32LE), half_big = half_type(H5T_IEEE_F32BE);
  const struct {
    hid_t type;
    Kind kind;
    int bytes;
    bool big_endian;
  } known[] = {{H5T_STD_I8LE, Kind::signed_integer, 1, false},    {H5T_STD_I8BE, Kind::signed_integer, 1, false},
               {H5T_STD_I16LE, Kind::signed_integer, 2, false},   {H5T_STD_I16BE, Kind::signed_integer, 2, true},
               {H5T_STD_I32LE, Kind::signed_integer, 4, false},   {H5T_STD_I32BE, Kind::signed_integer, 4, true},
               {H5T_STD_I64LE, Kind::signed_integer, 8, false},   {H5T_STD_I64BE, Kind::signed_integer, 8, true},
               {H5T_STD_U8LE, Kind::unsigned_integer, 1, false},  {H5T_STD_U8BE, Kind::unsigned_integer, 1, false},
               {H5T_STD_U16LE, Kind::unsigned_integer, 2, false}, {H5T_STD_U16BE, Kind::unsigned_integer, 2, true},
               {H5T_STD_U32LE, Kind::unsigned_integer, 4, false}, {H5T_STD_U32BE, Kind::unsigned_integer, 4, true},
               {H5T_STD_U64LE, Kind::unsigned_integer, 8, false}, {H5T_STD_U64BE, Kind::unsigned_integer, 8, true},
               {half_little, Kind::floating_point, 2, false},     {half_big, Kind::floating_point, 2, true},
               {H5T_IEEE_F32LE, Kind::floating_point, 4, false},  {H5T_IEEE_F32BE, Kind::floating_point, 4, true},
               {H5T_IEEE_F64LE, Kind::floating_point, 8, false},  {H5T_IEEE_F64BE, Kind::floating_point, 8, true}};
  Hdf5Number number{Kind::other, 0, false, class_name(type)};
  for (const auto& k : known)
    if (H5Tequal(type, k.type) > 0) {
      number = {k.kind, k.bytes, k.big_endian, ""};
      break;
    }
  H5Tclose(half_little);
  H5Tclose(half_big);
  return number;
}

Hdf5Attribute read_string(hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, static_cast<void*>(&text)) < 0 || text == nullptr) return {};
    Hdf5Attribute value = std::string(text, strnlen(text, kMostAttributeBytes));
    H5free_memory(text);
    return value;
  }
  const std::size_t size = H5Tget_size(type);
  if (size > static_cast<std::size_t>(kMostAttributeBytes)) return {};
  std::string text(size, '\0');
  if (H5Aread(attribute, type, text.data()) < 0) return {};
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

/// A few integers, such as the shape of a matrix; std::monostate of anything else.
Hdf5Attribute read_integers(hid_t attribute, hid_t type, hssize_t count) {
  constexpr hssize_t kMost = 16;
  const Hdf5Number::Kind kind = number_of(type).kind;
  if (count < 2 || count > kMost || (kind != Hdf5Number::Kind::signed_integer && kind != Hdf5Number::Kind::unsigned_integer))
    return {};
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  if (H5Aread(attribute, H5T_NATIVE_INT64, numbers.data()) < 0) return {};
  return numbers;
}

/// The value of an attribute that holds just one, or a few integers; std::monostate of any other.
Hdf5Attribute read_attribute(hid_t attribute) {
  const Hdf5Handle type(H5Aget_type(attribute), close_quietly<H5Tclose>);
  const Hdf5Handle space(H5Aget_space(attribute), close_quietly<H5Sclose>);
  if (type.id() < 0 || space.id() < 0) return {};
  if (const hssize_t count = H5Sget_simple_extent_npoints(space.id()); count != 1)
    return read_integers(attribute, type.id(), count);
  if (H5Tget_class(type.id()) == H5T_STRING) return read_string(attribute, type.id());
  const auto read = [&](auto value, hid_t memory) -> Hdf5Attribute {
    if (H5Aread(attribute, memory, &value) < 0) return {};
    return value;
  };
  switch (number_of(type.id()).kind) {
    case Hdf5Number::Kind::signed_integer:
      return read(std::int64_t{}, H5T_NATIVE_INT64);
    case Hdf5Number::Kind::unsigned_integer:
      return read(std::uint64_t{}, H5T_NATIVE_UINT64);
    case Hdf5Number::Kind::floating_point:
      return read(double{}, H5T_NATIVE_DOUBLE);
    case Hdf5Number::Kind::other:
      break;
  }
  return {};
}

class Survey {
 public:
  explicit Survey(int descriptor) : input_{descriptor} {
    const Hdf5Handle access(get("HDF5", "make a property list", [] { return H5Pcreate(H5P_FILE_ACCESS); }),
                            close_quietly<H5Pclose>);
    use_input_driver(access.id(), &input_);
    H5Pset_file_locking(access.id(), false, true);
    struct stat status {};
    if (::fstat(descriptor, &status) == 0) size_ = status.st_size;
    silence_hdf5();
    file_ = Hdf5Handle(H5Fopen("input", H5F_ACC_RDONLY, access.id()), close_quietly<H5Fclose>);
    if (file_.id() < 0) fail(hdf5_reason());
    description_.file_bytes = size_;
    Hdf5Object& root = description_.objects["/"];
    root.kind = Hdf5Object::Kind::group;
    read_children("/", root, Hdf5Description::kMostChildren);
    read_attributes("/", root);
  }

  /// `path` and, of a group, all below it. Of a path through an external link, where it leads; nothing if it does not exist.
  void add(const std::string& path) {
    std::string real = path;
    for (int links = 0;; ++links) {
      if (links > kMostLinks) fail(fmt::format("{}: more than {} links lead to it", path, kMostLinks));
      std::string target;
      switch (follow(real, path, target)) {
        case Step::missing:
          return;
        case Step::object:
          return describe(real, path, 0);
        case Step::external:
          return;
        case Step::soft:
          real = target;
      }
    }
  }

  Hdf5Description take() { return std::move(description_); }

 private:
  enum class Step { missing, object, external, soft };

  /// Walks the links of `real`. A soft link on the way gives the path with it replaced; an external one is noted at `path`.
  Step follow(const std::string& real, const std::string& path, std::string& target) {
    if (real == "/") return Step::object;
    for (std::size_t end = real.find('/', 1);; end = real.find('/', end + 1)) {
      const std::string prefix = real.substr(0, end);
      H5L_info_t info{};
      const htri_t found = H5Lexists(file_.id(), prefix.c_str(), H5P_DEFAULT);
      if (found <= 0) return Step::missing;
      get(prefix, "look at its link", [&] { return H5Lget_info(file_.id(), prefix.c_str(), &info, H5P_DEFAULT); });
      const std::string rest = end == std::string::npos ? "" : real.substr(end);
      if (info.type == H5L_TYPE_SOFT) {
        const std::string value = link_value(prefix, info.u.val_size);
        const std::string text = value.c_str();
        target = (text.rfind('/', 0) == 0 ? text : prefix.substr(0, prefix.rfind('/') + 1) + text) + rest;
        return Step::soft;
      }
      if (info.type != H5L_TYPE_HARD) {
        note_external(prefix, path, info, rest);
        return Step::external;
      }
      if (end == std::string::npos) return Step::object;
      if (!is_group(prefix)) return Step::missing;
    }
  }

  bool is_group(const std::string& path) {
    const Hdf5Handle object(H5Oopen(file_.id(), path.c_str(), H5P_DEFAULT), close_quietly<H5Oclose>);
    return object.id() >= 0 && H5Iget_type(object.id()) == H5I_GROUP;
  }

  std::string link_value(const std::string& link, std::size_t size) {
    if (size > 1 << 16) fail(fmt::format("{}: the link is longer than any path", link));
    std::string value(size + 1, '\0');
    get(link, "read its link", [&] { return H5Lget_val(file_.id(), link.c_str(), value.data(), size, H5P_DEFAULT); });
    value.resize(size);
    return value;
  }

  void note_external(const std::string& link, const std::string& path, const H5L_info_t& info, const std::string& rest) {
    Hdf5Object& object = description_.objects[path];
    object.kind = Hdf5Object::Kind::external_link;
    if (info.type != H5L_TYPE_EXTERNAL) return;
    const std::string value = link_value(link, info.u.val_size);
    unsigned flags = 0;
    const char *target_file = nullptr, *target_object = nullptr;
    get(link, "read its link",
        [&] { return H5Lunpack_elink_val(value.data(), value.size(), &flags, &target_file, &target_object); });
    object.target_file = target_file;
    object.target_object = std::strcmp(target_object, "/") == 0 && !rest.empty() ? rest : target_object + rest;
  }

  void read_children(const std::string& path, Hdf5Object& group, std::size_t most) {
    std::pair<std::vector<std::string>*, std::size_t> state{&group.children, most};
    get(path, "list it", [&] {
      return H5Literate_by_name(
          file_.id(), path.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
          [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
            auto& [names, limit] = *static_cast<std::pair<std::vector<std::string>*, std::size_t>*>(data);
            if (names->size() >= limit) return 1;
            names->emplace_back(name);
            return 0;
          },
          &state, H5P_DEFAULT);
    });
  }

  void read_attributes(const std::string& path, Hdf5Object& object) {
    get(path, "list its attributes", [&] {
      return H5Aiterate_by_name(
          file_.id(), path.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
          [](hid_t location, const char* name, const H5A_info_t*, void* data) -> herr_t {
            auto& attributes = *static_cast<std::map<std::string, Hdf5Attribute>*>(data);
            if (attributes.size() >= 4096) return 1;
            const Hdf5Handle attribute(H5Aopen(location, name, H5P_DEFAULT), close_quietly<H5Aclose>);
            attributes[name] = attribute.id() < 0 ? Hdf5Attribute() : read_attribute(attribute.id());
            return 0;
          },
          &object.attributes, H5P_DEFAULT);
    });
  }

  /// `real`: where it is; `path`: the name that it was asked for by.
  void describe(const std::string& real, const std::string& path, int depth) {
    if (static_cast<std::int64_t>(description_.objects.size()) > kMostObjects || depth > 32)
      fail(fmt::format("{}: there are too many objects below it", path));
    const Hdf5Handle id(get(path, "open it", [&] { return H5Oopen(file_.id(), real.c_str(), H5P_DEFAULT); }),
                        close_quietly<H5Oclose>);
    Hdf5Object& object = description_.objects[path];
    const bool root = path == "/";
    switch (H5Iget_type(id.id())) {
      case H5I_GROUP:
        object.kind = Hdf5Object::Kind::group;
        if (!root) read_children(real, object, kMostObjects);
        break;
      case H5I_DATASET:
        object.kind = Hdf5Object::Kind::dataset;
        describe_dataset(id.id(), path, object);
        break;
      default:
        object.kind = Hdf5Object::Kind::other;
    }
    if (!root) read_attributes(real, object);
    if (root || object.kind != Hdf5Object::Kind::group) return;
    const std::vector<std::string> children = object.children;
    for (const std::string& child : children) {
      std::string target;
      const std::string below = real + "/" + child, name = path + "/" + child;
      if (follow(below, name, target) == Step::object) describe(below, name, depth + 1);
    }
  }

  void describe_dataset(hid_t id, const std::string& path, Hdf5Object& object) {
    const Hdf5Handle type(get(path, "read its type", [&] { return H5Dget_type(id); }), close_quietly<H5Tclose>);
    const Hdf5Handle list(get(path, "read its properties", [&] { return H5Dget_create_plist(id); }),
                          close_quietly<H5Pclose>);
    object.number = number_of(type.id());
    object.located = true;
    const H5D_layout_t layout = H5Pget_layout(list.id());
    if (layout == H5D_VIRTUAL) return list_parts(list.id(), path, object);
    read_shape(id, path, object);
    if (layout == H5D_COMPACT) return read_compact(id, path, object, H5Tget_size(type.id()));
    if (layout == H5D_CHUNKED) return locate_chunks(id, list.id(), path, object);
    const int files = H5Pget_external_count(list.id());
    if (files > 0) return list_external(list.id(), files, path, object);
    const haddr_t offset = H5Dget_offset(id);
    if (offset != HADDR_UNDEF)
      object.extents = {{"", static_cast<std::int64_t>(offset), static_cast<std::int64_t>(H5Dget_storage_size(id))}};
  }

  void read_shape(hid_t id, const std::string& path, Hdf5Object& object) {
    const Hdf5Handle space(get(path, "read its shape", [&] { return H5Dget_space(id); }), close_quietly<H5Sclose>);
    space_shape(space.id(), path, object);
  }

  static void space_shape(hid_t space, const std::string& path, Hdf5Object& object) {
    if (H5Sget_simple_extent_type(space) == H5S_NULL) {
      object.shape = {0};
      return;
    }
    const int dimensions = get(path, "read its shape", [&] { return H5Sget_simple_extent_ndims(space); });
    std::array<hsize_t, H5S_MAX_RANK> sizes{};
    get(path, "read its shape", [&] { return H5Sget_simple_extent_dims(space, sizes.data(), nullptr); });
    for (int d = 0; d < dimensions; ++d) {
      if (sizes[static_cast<std::size_t>(d)] > static_cast<hsize_t>(INT64_MAX)) fail(path + ": its shape is out of range");
      object.shape.push_back(static_cast<std::int64_t>(sizes[static_cast<std::size_t>(d)]));
    }
  }

  void read_compact(hid_t id, const std::string& path, Hdf5Object& object, std::size_t element_bytes) {
    object.layout = Hdf5Object::Layout::compact;
    if (object.number.kind == Hdf5Number::Kind::other) return;
    std::size_t count = 1;
    for (const std::int64_t extent : object.shape)
      count *= static_cast<std::size_t>(std::min<std::int64_t>(extent, 1 << 16));
    if (count > (1 << 16) / element_bytes) fail(path + ": it is larger than compact data can be");
    object.data.resize(count * element_bytes);
    const Hdf5Handle type(H5Dget_type(id), close_quietly<H5Tclose>);
    if (count > 0)
      get(path, "read it", [&] { return H5Dread(id, type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, object.data.data()); });
  }

  void list_external(hid_t list, int files, const std::string& path, Hdf5Object& object) {
    object.layout = Hdf5Object::Layout::external;
    for (int i = 0; i < files; ++i) {
      std::array<char, 4096> name{};
      off_t offset = 0;
      hsize_t size = 0;
      get(path, "read where it lies",
          [&] { return H5Pget_external(list, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size); });
      object.extents.push_back(
          {name.data(), offset, size > static_cast<hsize_t>(INT64_MAX) ? INT64_MAX : static_cast<std::int64_t>(size)});
    }
  }

  /// A selection of whole rows [begin, begin + rows) of an array with so many dimensions; false if it is any other.
  static bool whole_rows(hid_t space, std::size_t dimensions, std::int64_t& begin, std::int64_t& rows) {
    std::array<hsize_t, H5S_MAX_RANK> first{}, last{}, shape{};
    if (H5Sget_simple_extent_ndims(space) != static_cast<int>(dimensions) || H5Sget_select_npoints(space) <= 0 ||
        H5Sget_simple_extent_dims(space, shape.data(), nullptr) < 0 ||
        H5Sget_select_bounds(space, first.data(), last.data()) < 0)
      return false;
    hsize_t points = last[0] - first[0] + 1;
    for (std::size_t d = 1; d < dimensions; ++d) {
      if (first[d] != 0 || last[d] + 1 != shape[d]) return false;
      points *= shape[d];
    }
    begin = static_cast<std::int64_t>(first[0]);
    rows = static_cast<std::int64_t>(last[0] - first[0] + 1);
    return static_cast<hsize_t>(H5Sget_select_npoints(space)) == points;
  }

  /// Where everything is selected, HDF5 does not know the shape before it opens the file; the rows must then be as many.
  static bool rows_of_source(hid_t space, std::size_t dimensions, Hdf5Part& part, std::int64_t& rows) {
    if (H5Sget_select_type(space) != H5S_SEL_ALL) return whole_rows(space, dimensions, part.source_begin, rows);
    rows = part.rows;
    return true;
  }

  /// The shape comes from the selections: HDF5 would open the other files to tell it.
  void list_parts(hid_t list, const std::string& path, Hdf5Object& object) {
    object.layout = Hdf5Object::Layout::virtual_dataset;
    std::size_t count = 0;
    get(path, "list its parts", [&] { return H5Pget_virtual_count(list, &count); });
    for (std::size_t i = 0; i < std::min<std::size_t>(count, kMostObjects); ++i) {
      const Hdf5Handle rows(H5Pget_virtual_vspace(list, i), close_quietly<H5Sclose>);
      const Hdf5Handle source(H5Pget_virtual_srcspace(list, i), close_quietly<H5Sclose>);
      std::array<char, 4096> file{}, name{};
      Hdf5Part part;
      std::int64_t source_rows = 0;
      object.shape.clear();
      if (rows.id() >= 0) space_shape(rows.id(), path, object);
      const std::size_t dimensions = object.shape.size();
      if (dimensions == 0 || !whole_rows(rows.id(), dimensions, part.begin, part.rows) ||
          !rows_of_source(source.id(), dimensions, part, source_rows) || source_rows != part.rows ||
          H5Pget_virtual_filename(list, i, file.data(), file.size() - 1) < 0 ||
          H5Pget_virtual_dsetname(list, i, name.data(), name.size() - 1) < 0) {
        object.parts.clear();
        return;
      }
      part.target_file = file.data();
      part.target_object = name[0] == '/' ? name.data() : std::string("/") + name.data();
      object.parts.push_back(std::move(part));
    }
  }

  void read_filters(hid_t list, Hdf5Object& object) {
    const int count = H5Pget_nfilters(list);
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0, config = 0;
      std::size_t values = 0;
      std::array<char, 64> name{};
      const H5Z_filter_t id =
          H5Pget_filter2(list, static_cast<unsigned>(i), &flags, &values, nullptr, name.size() - 1, name.data(), &config);
      object.filters.push_back({static_cast<int>(id), name.data()});
    }
  }

  /// All chunks of the grid in row-major order. There may be no more of them than the file has bytes.
  void locate_chunks(hid_t id, hid_t list, const std::string& path, Hdf5Object& object) {
    object.layout = Hdf5Object::Layout::chunked;
    const std::size_t dimensions = object.shape.size();
    if (dimensions == 0 || dimensions > kMostDimensions) fail(fmt::format("{}: it has {} dimensions", path, dimensions));
    std::array<hsize_t, H5S_MAX_RANK> chunk{};
    get(path, "read its chunks", [&] { return H5Pget_chunk(list, static_cast<int>(dimensions), chunk.data()); });
    object.chunk.assign(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(dimensions));
    read_filters(list, object);
    unsigned options = 0;
    if (H5Pget_chunk_opts(list, &options) >= 0 && options != 0)
      object.filters.push_back({-1, "filters that leave out chunks at the edge"});
    std::int64_t count = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
      if (object.chunk[d] <= 0) fail(path + ": a chunk has no extent");
      const std::int64_t along = object.shape[d] / object.chunk[d] + (object.shape[d] % object.chunk[d] != 0);
      if (along == 0) return;
      if (count > std::min(kMostChunks, size_) / along)
        fail(size_ < kMostChunks
                 ? fmt::format("{}: it has more chunks than a file of {} bytes can hold; the file is damaged: copy it again",
                               path, size_)
                 : fmt::format("{}: it has more than {} chunks; write it with larger ones, e.g. h5repack -l {}:CONTI", path,
                               kMostChunks, path));
      count *= along;
    }
    std::array<hsize_t, kMostDimensions> corner{};
    for (std::int64_t i = 0; i < count; ++i) {
      object.chunks.push_back(locate_chunk(id, corner.data()));
      for (std::size_t d = dimensions; d-- > 0;) {
        corner[d] += chunk[d];
        if (static_cast<std::int64_t>(corner[d]) < object.shape[d]) break;
        corner[d] = 0;
      }
    }
  }

  Hdf5Chunk locate_chunk(hid_t id, const hsize_t* corner) {
    Hdf5Chunk chunk;
    hsize_t bytes = 0;
    char unused[64];
    if (H5Dget_chunk_storage_size(id, corner, &bytes) < 0 || bytes == 0 || bytes > static_cast<hsize_t>(size_)) return chunk;
    input_.tracing = true;
    input_.traced = -1;
    const bool found = H5Dread_chunk(id, H5P_DEFAULT, corner, &chunk.mask, unused) >= 0;
    input_.tracing = false;
    if (!found || input_.traced < 0) return {};
    chunk.offset = input_.traced;
    chunk.bytes = static_cast<std::int64_t>(bytes);
    return chunk;
  }

  Hdf5InputFile input_;
  std::int64_t size_ = 0;
  Hdf5Handle file_;
  Hdf5Description description_;
};

}  // namespace

Hdf5Description survey_hdf5(int descriptor, const std::vector<std::string>& objects) {
  Survey survey(descriptor);
  for (const std::string& object : objects) survey.add(object);
  return survey.take();
}

}  // namespace shardmat
