// What the service tells about itself: figures, the access log, streams.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/serve/observe/access_log.h"
#include "tools/serve/observe/prometheus.h"

namespace shardmat::serve {
namespace {

TEST(PrometheusText, HasTheFormat) {
  PrometheusText text;
  text.family("a_total", "counter", "What it is.");
  text.sample(3);
  text.sample(0.1, {{"x", "q\"b\\n\nl"}, {"y", ""}});
  Histogram histogram({0.5, 2});
  for (const double value : {0.25, 0.5, 1.0, 3.0}) histogram.add(value);
  text.family("b_seconds", "histogram", "Time.");
  text.sample(histogram, {{"op", "m"}});
  EXPECT_EQ(text.text(),
            "# HELP a_total What it is.\n# TYPE a_total counter\na_total 3\n"
            "a_total{x=\"q\\\"b\\\\n\\nl\",y=\"\"} 0.1\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\n"
            "b_seconds_bucket{op=\"m\",le=\"0.5\"} 2\nb_seconds_bucket{op=\"m\",le=\"2\"} 3\n"
            "b_seconds_bucket{op=\"m\",le=\"+Inf\"} 4\nb_seconds_sum{op=\"m\"} 4.75\nb_seconds_count{op=\"m\"} 4\n");
}

TEST(AccessLine, IsOneLineOfJson) {
  RequestHead head;
  head.method = "POST", head.target = "/v1/\"a\xff\n" + std::string(5000, 'a'), head.request_id = "r";
  head.rights = std::make_shared<Rights>(Rights::of_owner("o"));
  const std::optional<ProductTimes> times(ProductTimes{0.5, 0.25, 2, 0.5, 1, 7, 8});
  const std::string line = access_line({head, 429, "busy", 3, 4, 0.125, times, false}, 1700000000.25);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.250Z");
  EXPECT_EQ(json["token"], "o");
  EXPECT_EQ(json["status"], 429);
  EXPECT_EQ(json["code"], "busy");
  EXPECT_EQ(json["copy_seconds"], 0.75);
  EXPECT_EQ(json["batch"], "7/8");
  EXPECT_LT(json["path"].get<std::string>().size(), 1100u);
  EXPECT_FALSE(json.contains("trace_id"));
  const auto plain = nlohmann::json::parse(access_line({RequestHead{}, 400, "", 0, 0, 0, std::nullopt, false}, 0));
  EXPECT_FALSE(plain.contains("token"));
  EXPECT_FALSE(plain.contains("batch"));
}

TEST(TextStream, CutsOffWhoIsTooSlow) {
  TextStream stream;
  int woken = 0;
  stream.on_more = [&] { ++woken; };
  stream.push("a");
  stream.push("b");
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(stream.take(), "ab");
  for (int i = 0; i < 1000 && stream.is_open(); ++i) stream.push(std::string(1000, 'x'));
  EXPECT_FALSE(stream.is_open());
  EXPECT_LT(stream.take().size(), 300'000u);
  stream.push("late");
  EXPECT_EQ(stream.take(), "");
}

}  // namespace
}  // namespace shardmat::serve
