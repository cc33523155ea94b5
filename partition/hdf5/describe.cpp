#include "partition/hdf5/describe.h"

#include <fmt/format.h>

#include <csignal>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "kernels/base/error.h"
#include "partition/hdf5/environment.h"
#include "partition/hdf5/own_description.h"
#include "partition/hdf5/run_helper.h"

namespace shardmat {
namespace {

constexpr int kMostFilesDeep = 8;
constexpr const char* kHelper = "shardmat-h5check";
constexpr HelperLimits kLimits{/*seconds=*/20, Hdf5Description::kMostBytes};

[[noreturn]] void fail_over(const InputFile& file, const HelperResult& result) {
  const std::string path = file.path().string();
  if (result.timed_out || result.signal == SIGXCPU || result.too_long)
    throw Error(
        ErrorKind::input,
        fmt::format(
            "{}: its HDF5 metadata {}; it has too many objects or chunks, or is damaged. Write it with larger "
            "chunks, e.g. h5repack -l CONTI, or copy it again",
            path, result.too_long ? "does not fit into memory" : fmt::format("was not read within {} s", kLimits.seconds)));
  constexpr std::size_t kMostSaid = 1 << 16;
  const auto json = nlohmann::json::parse(result.output.substr(0, kMostSaid), nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    const std::string why = json["error"].get<std::string>().substr(0, 400);
    if (why.rfind('/', 0) == 0) throw Error(ErrorKind::input, fmt::format("{}: {}", path, why));  // of an object in it
    throw Error(ErrorKind::input, fmt::format("{}: cannot open it as an HDF5 file: {}. If it was one, it is damaged or was "
                                              "cut off: copy or make it again",
                                              path, why));
  }
  throw Error(
      ErrorKind::input,
      fmt::format("{}: the HDF5 library {} over its metadata, so the file is damaged or made to do harm; copy or make "
                  "it again",
                  path, result.how_it_ended));
}

/// Relative names are of files beside the one that names them.
std::filesystem::path beside(const std::filesystem::path& file, const std::string& target) {
  return std::filesystem::path(target).is_absolute() ? std::filesystem::path(target) : file.parent_path() / target;
}

Hdf5Description described(const InputFile& file, const std::vector<std::string>& objects, int deep);

/// The dataset that a part of a virtual one comes from.
Hdf5Object source_of(const InputFile& file, const Hdf5Part& part, int deep) {
  const InputFile target(part.target_file == "." ? file.path() : beside(file.path(), part.target_file));
  auto objects = described(target, {part.target_object}, deep + 1).objects;
  const auto found = objects.find(part.target_object);
  if (found == objects.end())
    throw Error(ErrorKind::input, fmt::format("{}: there is no dataset {}, which {} refers to", target.path().string(),
                                              part.target_object, file.path().string()));
  if (found->second.file.empty()) found->second.file = target.path().string();
  return std::move(found->second);
}

/// Puts what an external link leads to in its place, and says in which file each thing lies.
void follow_links(const InputFile& file, Hdf5Description& description, int deep) {
  std::map<std::string, Hdf5Object> found;
  for (auto& [path, object] : description.objects) {
    for (Hdf5Extent& extent : object.extents)
      if (object.layout == Hdf5Object::Layout::external) extent.file = beside(file.path(), extent.file).string();
    for (Hdf5Part& part : object.parts) part.source = source_of(file, part, deep);
    if (object.kind != Hdf5Object::Kind::external_link || object.target_file.empty()) continue;
    const InputFile target(beside(file.path(), object.target_file));
    const std::string& name = object.target_object;
    for (auto& [below, other] : described(target, {name}, deep + 1).objects) {
      if (below.rfind(name, 0) != 0) continue;
      Hdf5Object copy = std::move(other);
      if (copy.file.empty()) copy.file = target.path().string();
      found.insert_or_assign(path + below.substr(name.size()), std::move(copy));
    }
  }
  for (auto& [path, object] : found) description.objects.insert_or_assign(path, std::move(object));
}

Hdf5Description described(const InputFile& file, const std::vector<std::string>& objects, int deep) {
  if (deep > kMostFilesDeep)
    throw Error(ErrorKind::input, fmt::format("{}: more than {} files lead to it", file.path().string(), kMostFilesDeep));
  Hdf5Description description = run_h5check(file, objects);
  if (hdf5_links_are_followed()) follow_links(file, description, deep);
  return description;
}

/// Descriptions by path, size, time of change and objects. One file is opened several times by a command.
class Memory {
 public:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::vector<std::string>>;
  static Key key(const InputFile& file, const std::vector<std::string>& objects) {
    return {file.path().string(), file.size(), file.changed_ns(), objects};
  }
  std::string find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto at = texts_.find(key);
    return at == texts_.end() ? std::string() : at->second;
  }
  void put(Key key, std::string text) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    if (bytes_ > kMostBytes) texts_.clear(), bytes_ = 0;
    bytes_ += text.size();
    texts_.insert_or_assign(std::move(key), std::move(text));
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::string> texts_;
  std::size_t bytes_ = 0;  ///< at least those of the texts
};

Memory& memory() {
  static Memory memory;
  return memory;
}

std::string text_of(const InputFile& file, const std::vector<std::string>& objects) {
  const Memory::Key key = Memory::key(file, objects);
  std::string text = memory().find(key);
  if (!text.empty()) return text;
  text = described(file, objects, 0).to_text();
  memory().put(key, text);
  return text;
}

}  // namespace

Hdf5Description run_h5check(const InputFile& file, const std::vector<std::string>& objects) {
  refuse_other_hdf5_drivers();
  const HelperResult result = run_helper(kHelper, objects, file.descriptor(), kLimits);
  if (!result.succeeded || result.output.rfind("{\"error\"", 0) == 0) fail_over(file, result);
  return Hdf5Description::from_text(result.output, file.path().string());
}

Hdf5Description describe_hdf5(const InputFile& file, const std::vector<std::string>& objects) {
  return Hdf5Description::from_text(text_of(file, objects), file.path().string());
}

bool needs_hdf5_description(const Hdf5Input& input) { return !own_description(InputFile(input.path)); }

std::string hdf5_description_text(const Hdf5Input& input) { return text_of(InputFile(input.path), input.objects); }

void remember_hdf5_description(const Hdf5Input& input, std::string text) {
  memory().put(Memory::key(InputFile(input.path), input.objects), std::move(text));
}

}  // namespace shardmat
