#include "tools/serve/state/shard_records.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "tools/serve/state/replace_file.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

json json_of(const FileMark& mark) {
  return {{"bytes", mark.bytes}, {"seconds", mark.seconds}, {"nanoseconds", mark.nanoseconds}};
}

FileMark mark_in(const json& mark) { return {mark.at("bytes"), mark.at("seconds"), mark.at("nanoseconds")}; }

}  // namespace

std::optional<FileMark> mark_of(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileMark{static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

FileKey key_of(const struct stat& status) {
  return {status.st_dev,          status.st_ino,         status.st_size,        status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

std::optional<FileKey> key_of(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return key_of(status);
}

bool is_same(const FileMark& now, const FileMark& then) {
  return now.bytes == then.bytes && now.seconds == then.seconds &&
         (now.nanoseconds == then.nanoseconds || now.nanoseconds == 0);
}

ShardRecords::ShardRecords(fs::path file) : file_(std::move(file)) {
  if (!fs::exists(file_)) return;
  try {
    std::ifstream stream(file_);
    const json all = json::parse(stream);
    for (const json& one : all.at("shards"))
      records_[one.at("source")] = {one.at("sha256"), mark_in(one.at("of")), mark_in(one.at("shard"))};
  } catch (const std::exception& error) {
    records_.clear();
    std::error_code ignored;
    fs::rename(file_, file_.string() + ".aside", ignored);
    log_line(
        fmt::format("WARNING: {} is not what the service wrote ({}) and is set aside; no shard file counts as made of "
                    "another file",
                    file_.string(), error.what()));
  }
}

void ShardRecords::add(const std::string& source, const ShardRecord& record) {
  records_[source] = record;
  write();
}

void ShardRecords::erase(const std::string& source) {
  if (records_.erase(source) > 0) write();
}

const ShardRecord* ShardRecords::of(const std::string& source) const {
  const auto found = records_.find(source);
  return found == records_.end() ? nullptr : &found->second;
}

void ShardRecords::write() const {
  json list = json::array();
  for (const auto& [source, record] : records_)
    list.push_back(
        {{"source", source}, {"sha256", record.sha256}, {"of", json_of(record.source)}, {"shard", json_of(record.shard)}});
  if (const auto error = replace_file(file_, json{{"shards", list}}.dump(2) + "\n"))
    log_line(fmt::format("{} is not written: {}", file_.string(), error.message()));
}

}  // namespace shardmat::serve
