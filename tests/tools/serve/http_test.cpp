// What may stand in a header, who is let in, and how many connections there may be.
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tools/serve/gate/gate.h"
#include "tools/serve/http/connection_count.h"
#include "tools/serve/http/head_parser.h"
#include "tools/serve/http/header_scan.h"
#include "tools/serve/http/reply_header.h"

namespace shardmat::serve {
namespace {

HeaderScanner::Found scanned(const std::string& text) { return HeaderScanner().scan(text); }

TEST(HeaderScanner, FindsTheEndHoweverTheHeaderArrives) {
  const std::string header = "GET / HTTP/1.1\r\nHost: a\r\nX-Y: \"b\"\t\xc3\xa4\r\n\r\n", all = header + "body\n\x01";
  EXPECT_EQ(scanned(all).bytes, header.size());
  HeaderScanner scanner;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto found = scanner.scan(std::string_view(all).substr(0, i));
    EXPECT_EQ(found.bytes, 0u) << i;
    EXPECT_EQ(found.fault, "") << i;
  }
  EXPECT_EQ(scanner.scan(all).bytes, header.size());
}

TEST(HeaderScanner, RefusesWhatOthersReadDifferently) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& bad :
       {begin + "A: b\n\r\n", std::string("GET / HTTP/1.1\nHost: a\n\n"), begin + "A: b\r\n c\r\n\r\n",
        begin + "A: b\r\n\tc\r\n\r\n", begin + " A: b\r\n\r\n", begin + "A : b\r\n\r\n", begin + "A\t: b\r\n\r\n",
        begin + ": b\r\n\r\n", begin + "A\r\n\r\n", begin + std::string("A: b\0c\r\n\r\n", 11), begin + "A: b\rc\r\n\r\n",
        begin + "A: \x01\r\n\r\n", begin + "A(: b\r\n\r\n", std::string("\r\nGET / HTTP/1.1\r\n\r\n"),
        std::string("\x16\x03\x01")})
    EXPECT_NE(scanned(bad).fault, "") << bad;
}

TEST(Framing, HasOneMeaning) {
  const std::pair<std::string, std::string> host{"Host", "a"};
  EXPECT_EQ(framing_fault({host}, true), "");
  EXPECT_EQ(framing_fault({host, {"content-length", "12"}}, true), "");
  EXPECT_EQ(framing_fault({host, {"Transfer-Encoding", "chunked"}}, true), "");  // refused later, with 411
  EXPECT_EQ(framing_fault({}, false), "");
  for (const Fields& bad : std::vector<Fields>{{},
                                               {host, host},
                                               {host, {"Content-Length", "3"}, {"content-length", "3"}},
                                               {host, {"Content-Length", "3"}, {"Transfer-Encoding", "chunked"}},
                                               {host, {"Content-Length", "3, 3"}},
                                               {host, {"Content-Length", "+3"}},
                                               {host, {"Content-Length", "-3"}},
                                               {host, {"Content-Length", "0x3"}},
                                               {host, {"Content-Length", ""}},
                                               {host, {"Content-Length", std::string(19, '9')}}})
    EXPECT_NE(framing_fault(bad, true), "") << bad.size();
}

TEST(TraceId, OnlyOfAGoodTraceparent) {
  const std::string id = "0af7651916cd43dd8448eb211c80319c";
  EXPECT_EQ(trace_id_of("00-" + id + "-b7ad6b7169203331-01"), id);
  EXPECT_EQ(trace_id_of("01-" + id + "-b7ad6b7169203331-01"), "");
  EXPECT_EQ(trace_id_of("00-" + std::string(32, '0') + "-b7ad6b7169203331-01"), "");
  EXPECT_EQ(trace_id_of("00-" + id + "-b7ad6b7169203331-01x"), "");
  EXPECT_EQ(trace_id_of("00-" + std::string(32, '"') + "-b7ad6b7169203331-01"), "");
  EXPECT_EQ(trace_id_of(""), "");
}

TEST(TcpAddresses, AreReadAndRefused) {
  EXPECT_EQ(parse_tcp_address("127.0.0.1:8980").port, 8980);
  EXPECT_EQ(parse_tcp_address("[::1]:0").host, "::1");
  EXPECT_EQ(parse_tcp_address("localhost:1").host, "127.0.0.1");
  for (const char* bad : {"", "1", "127.0.0.1", ":80", "::1:80", "[127.0.0.1]:80", "127.0.0.1:65536", "127.0.0.1:-1",
                          "127.0.0.1:x", "host:80", "[::1]", "[::1:80", "127.1:80"})
    EXPECT_THROW(parse_tcp_address(bad), Error) << bad;
  EXPECT_TRUE(is_loopback(parse_tcp_address("127.1.2.3:1")));
  EXPECT_TRUE(is_loopback(parse_tcp_address("[::1]:1")));
  EXPECT_FALSE(is_loopback(parse_tcp_address("0.0.0.0:1")));
  EXPECT_FALSE(is_loopback(parse_tcp_address("[::]:1")));
}

TEST(ConnectionCount, LimitsAllAndEachAddressAndKeepsPlacesForTheUnixSocket) {
  ConnectionCount count(8, 2);  // of which two are kept for the Unix socket
  const Peer a{"192.0.2.1", false, false}, b{"192.0.2.2", false, false}, c{"192.0.2.3", false, false};
  const Peer here{"127.0.0.1", false, true}, here_too{"::1", false, true}, file;
  EXPECT_TRUE(count.add(a));
  EXPECT_TRUE(count.add(a));
  EXPECT_FALSE(count.add(a));
  EXPECT_TRUE(count.add(b));
  count.remove(a);
  EXPECT_TRUE(count.add(a));
  EXPECT_TRUE(count.add(here));
  EXPECT_TRUE(count.add(here_too));
  EXPECT_TRUE(count.add(here));
  EXPECT_FALSE(count.add(c));
  EXPECT_TRUE(count.add(file));
  EXPECT_TRUE(count.add(file));
  EXPECT_FALSE(count.add(file));
  EXPECT_EQ(count.all(), 8u);
  ConnectionCount loopback(20, 2);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(loopback.add(i % 2 == 0 ? here : here_too));
  EXPECT_FALSE(loopback.add(here));
  EXPECT_TRUE(loopback.add(a));
}

TEST(ParseHead, AbsoluteTargetsNameTheHost) {
  const auto parsed = [](const std::string& target) {
    return parse_head("GET " + target + " HTTP/1.1\r\nHost: other\r\n\r\n");
  };
  const ParsedHead one = parsed("http://localhost:80/v2?a=b");
  ASSERT_FALSE(one.problem);
  EXPECT_EQ(one.head.target, "/v2?a=b");
  EXPECT_EQ(one.head.field("Host"), "localhost:80");
  EXPECT_EQ(parsed("HTTPS://localhost").head.target, "/");
  EXPECT_EQ(parsed("http://localhost?a=b").head.target, "/?a=b");
  EXPECT_EQ(parsed("/v2").head.field("Host"), "other");
  for (const char* bad : {"http://", "http:///v2", "http://user@localhost/v2"}) EXPECT_TRUE(parsed(bad).problem) << bad;
}

TEST(HttpDate, IsOfTheStandard) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

RequestHead head(bool is_unix, const std::string& method, Fields fields) {
  RequestHead result;
  result.peer = is_unix ? Peer{} : Peer{"127.0.0.1", false, true};
  result.method = method, result.fields = std::move(fields);
  return result;
}

TEST(Gate, HostAndOrigin) {
  const Gate gate({{"lab.example.org", "192.0.2.1"}, {"https://lab.example.org"}, true}, {});
  const auto status = [&](const RequestHead& request) {
    const auto problem = gate.check_source(request);
    return problem ? problem->status : 200;
  };
  for (const char* good :
       {"localhost", "LOCALHOST:8980", "127.0.0.1:1", "[::1]", "[::1]:80", "lab.example.org", "192.0.2.1:80"})
    EXPECT_EQ(status(head(false, "GET", {{"Host", good}})), 200) << good;
  for (const char* bad :
       {"", "evil.org", "localhost.evil.org", "localhost:x", "localhost:99999", ":80", "::1", "[::1]x", "localhost:80:80"})
    EXPECT_EQ(status(head(false, "GET", {{"Host", bad}})), 421) << bad;
  EXPECT_EQ(status(head(true, "GET", {{"Host", "whatever"}})), 200);
  // A browser comes to the Unix socket through a forwarded port, by whatever name leads there.
  EXPECT_EQ(status(head(true, "GET", {{"Host", "evil.org:8980"}, {"User-Agent", "Mozilla/5.0"}})), 421);
  EXPECT_EQ(status(head(true, "GET", {{"Host", "evil.org:8980"}, {"Sec-Fetch-Site", "none"}})), 421);
  EXPECT_EQ(status(head(true, "GET", {{"Host", "localhost:8980"}, {"User-Agent", "Mozilla/5.0"}})), 200);
  auto elsewhere = head(false, "GET", {{"Host", "[2001:db8::1]:8980"}});
  EXPECT_EQ(status(elsewhere), 421);
  elsewhere.peer.own_address = url_host("2001:db8::1");  // where the connection came in
  EXPECT_EQ(status(elsewhere), 200);
  const auto from = [&](bool is_unix, const char* method, const char* origin) {
    return status(head(is_unix, method, {{"Host", "localhost"}, {"Origin", origin}}));
  };
  EXPECT_EQ(from(false, "POST", "https://lab.example.org"), 200);
  EXPECT_EQ(from(false, "POST", "http://lab.example.org"), 403);
  EXPECT_EQ(from(false, "POST", "null"), 403);
  EXPECT_EQ(from(true, "DELETE", "https://evil.org"), 403);
  EXPECT_EQ(from(false, "GET", "https://evil.org"), 200);
  const auto own = [&](bool tls, const char* host, const char* origin) {
    auto request = head(false, "POST", {{"Host", host}, {"Origin", origin}});
    request.peer.has_tls = tls;
    return status(request);
  };
  EXPECT_EQ(own(false, "localhost:8980", "http://localhost:8980"), 200);
  EXPECT_EQ(own(true, "localhost:8980", "https://LOCALHOST:8980"), 200);
  EXPECT_EQ(own(true, "localhost:8980", "http://localhost:8980"), 403);
  EXPECT_EQ(own(false, "localhost:8980", "http://localhost:8981"), 403);
  EXPECT_EQ(own(false, "evil.org:8980", "http://evil.org:8980"), 421);
  const auto fields = [&](const char* origin) { return gate.fields_for_pages(head(false, "GET", {{"Origin", origin}})); };
  EXPECT_EQ(fields("https://lab.example.org").at(1).second, "https://lab.example.org");
  EXPECT_EQ(fields("https://evil.org").size(), 1u);  // Vary alone
  const Fields preflight{{"Host", "localhost"}, {"Origin", "https://evil.org"}, {"Access-Control-Request-Method", "PUT"}};
  EXPECT_EQ(status(head(false, "OPTIONS", preflight)), 403);
}

TEST(Gate, SessionsOfThePage) {
  TokenTable tokens;
  tokens.add({sha256("good"), std::make_shared<Rights>("g", std::vector{Scope::read}, std::vector<std::string>{"*"})});
  Gate gate({{}, {}, true}, tokens);
  const double start = 1000;
  auto form = head(false, "POST", {{"Host", "localhost:1"}});
  EXPECT_FALSE(gate.log_in(form, "bad", start, 0));
  const std::string set = gate.log_in(form, "good", start, 0).value();
  EXPECT_EQ(set.substr(set.find(';')), "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
  EXPECT_EQ(set.find("good"), std::string::npos);
  const std::string cookie = "theirs=1; " + set.substr(0, set.find(';'));
  const auto status = [&](const char* method, const Fields& more, double now) {
    Fields fields{{"Host", "localhost:1"}, {"Cookie", cookie}};
    fields.insert(fields.end(), more.begin(), more.end());
    auto request = head(false, method, fields);
    const auto refusal = gate.identify(request, now, 0);
    EXPECT_EQ(request.session != nullptr, !refusal);
    return refusal ? refusal->status : 200;
  };
  const std::pair<std::string, std::string> origin{"Origin", "http://localhost:1"}, page{kPageField, "1"};
  EXPECT_EQ(status("GET", {}, start), 200);
  EXPECT_EQ(status("GET", {}, start + 43199), 200);
  EXPECT_EQ(status("GET", {}, start + 43200), 401);
  EXPECT_EQ(status("POST", {origin, page}, start), 200);
  EXPECT_EQ(status("POST", {origin}, start), 403);
  EXPECT_EQ(status("POST", {page}, start), 403);
  EXPECT_EQ(status("DELETE", {{"Origin", "http://localhost:2"}, page}, start), 403);
  auto secure = form;
  secure.peer.has_tls = true;
  EXPECT_NE(gate.log_in(secure, "good", start, 0)->find("; Secure"), std::string::npos);
  auto leaving = head(false, "DELETE", {{"Cookie", cookie}});
  EXPECT_NE(gate.log_out(leaving).find("=; Path=/; Max-Age=0"), std::string::npos);
  EXPECT_EQ(status("GET", {}, start), 401);
  const std::string next = gate.log_in(form, "good", start, 0).value();
  auto request = head(false, "GET", {{"Cookie", next.substr(0, next.find(';'))}});
  ASSERT_FALSE(gate.identify(request, start, 0));
  gate.set_tokens({});
  EXPECT_TRUE(request.session->is_over(start));
  EXPECT_TRUE(gate.identify(request, start, 0));
}

TEST(Sessions, AreBoundedAndFoundAmongOtherCookies) {
  EXPECT_EQ(cookie_of("a=1; bb=2;b=3", "b"), "3");
  EXPECT_EQ(cookie_of("b", "b"), "");
  EXPECT_EQ(cookie_of("", "b"), "");
  Sessions sessions;
  const auto rights = std::make_shared<Rights>(Rights::of_owner("o"));
  const auto field = [&](const std::string& number) { return sessions.cookie_name() + "=" + number; };
  const std::string first = sessions.open(rights, 0);
  for (std::size_t i = 1; i <= Sessions::kMost; ++i) sessions.open(rights, static_cast<double>(i));
  EXPECT_EQ(sessions.size(), Sessions::kMost);
  EXPECT_EQ(sessions.find(field(first), 10), nullptr);
  const std::string last = sessions.open(rights, 1e6);  // all others are over
  EXPECT_EQ(sessions.size(), 1u);
  EXPECT_NE(sessions.find(field(last), 1e6), nullptr);
  EXPECT_EQ(sessions.find(field(last + "0"), 1e6), nullptr);
}

TEST(Gate, TokensAndScopes) {
  TokenTable tokens;
  tokens.add({sha256("good"), std::make_shared<Rights>("g", std::vector{Scope::read}, std::vector<std::string>{"a*"})});
  Gate gate({{}, {}, true}, tokens);
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer bad", "Basic good", "good", "Bearer good "}) {
    auto request = head(false, "GET", {{"Authorization", bad}});
    const auto refusal = gate.identify(request, 0, 0);
    ASSERT_TRUE(refusal) << bad;
    EXPECT_EQ(refusal->status, 401);
    EXPECT_EQ(refusal->fields.at(0).first, "WWW-Authenticate");
  }
  auto request = head(false, "GET", {{"authorization", "bearer good"}});
  ASSERT_FALSE(gate.identify(request, 0, 0));
  EXPECT_EQ(request.rights->name(), "g");
  const Scope read = Scope::read, admin = Scope::admin;
  EXPECT_FALSE(Gate::check_rights(*request.rights, read, ""));
  EXPECT_FALSE(Gate::check_rights(*request.rights, read, "abc"));
  EXPECT_EQ(Gate::check_rights(*request.rights, read, "b")->code, "wrong_matrix");
  EXPECT_EQ(Gate::check_rights(*request.rights, admin, "a")->text, "the token g has no scope admin");
  TokenTable changed;
  changed.add({sha256("good"), std::make_shared<Rights>("g", std::vector{Scope::admin}, std::vector<std::string>{"b"})});
  gate.set_tokens(changed);
  EXPECT_TRUE(request.rights->may(Scope::admin));  // the request under way has the new rights
  EXPECT_FALSE(request.rights->may(Scope::read));
  TokenTable ending;
  auto until = std::make_shared<Rights>("g", std::vector{Scope::admin}, std::vector<std::string>{"b"});
  until->expires = 1000;
  ending.add({sha256("good"), until});
  gate.set_tokens(ending);
  EXPECT_FALSE(gate.identify(request, 0, 999.9));
  EXPECT_EQ(gate.identify(request, 0, 1000)->status, 401);
  auto form = head(false, "POST", {{"Host", "localhost:1"}});
  EXPECT_FALSE(gate.log_in(form, "good", 50, 1000));
  const std::string set = gate.log_in(form, "good", 50, 990).value();  // the session ends with the token
  auto page = head(false, "GET", {{"Host", "localhost:1"}, {"Cookie", set.substr(0, set.find(';'))}});
  EXPECT_FALSE(gate.identify(page, 59, 999));
  EXPECT_EQ(gate.identify(page, 60, 1000)->status, 401);
  EXPECT_EQ(gate.identify(page, 55, 1000)->status, 401);  // the file may let the token end earlier than at the log-in
  gate.set_tokens({});
  EXPECT_TRUE(request.rights->is_revoked());
  EXPECT_FALSE(request.rights->may(Scope::admin));
  EXPECT_TRUE(gate.identify(request, 0, 0));
  auto local = head(true, "GET", {});
  EXPECT_FALSE(gate.identify(local, 0, 0));
  EXPECT_TRUE(local.rights->may(Scope::admin));
}

TEST(Gate, Quota) {
  Rights limited("l", {Scope::multiply}, {"*"});
  limited.requests_per_second = 1, limited.bytes_per_second = 100;
  Gate gate({}, {});
  RequestHead request = head(false, "POST", {});
  request.rights = std::make_shared<Rights>(limited);
  request.content_length = 300;
  EXPECT_FALSE(gate.check_quota(request, 1));
  EXPECT_EQ(gate.check_quota(request, 1.5)->code, "quota");
  EXPECT_NEAR(gate.check_quota(request, 2)->retry_after_seconds, 2, 1e-9);
  EXPECT_FALSE(gate.check_quota(request, 4.1));
}

}  // namespace
}  // namespace shardmat::serve
