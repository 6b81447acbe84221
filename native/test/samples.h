#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "test/json_text.h"

namespace samples {

/// Statements of every kind, each a rule's `expr` in an ip table.
inline const std::vector<std::string>& rules() {
  static const std::vector<std::string> list{
      R"([{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.1.2.3","len":20}}}},{"accept":null}])",
      R"([{"match":{"op":"!=","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":80}},{"drop":null}])",
      R"([{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}},{"return":null}])",
      R"([{"match":{"op":"==","left":{"ct":{"key":"ip daddr","dir":"original"}},"right":"10.0.0.1"}},{"jump":{"target":"x"}}])",
      R"([{"match":{"op":">","left":{"&":[{"meta":{"key":"mark"}},255]},"right":5}},{"goto":{"target":"x"}}])",
      R"([{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"cali*"}},{"accept":null}])",
      R"([{"match":{"op":"==","left":{"fib":{"result":"type","flags":"daddr"}},"right":"local"}},{"accept":null}])",
      R"([{"match":{"op":"!=","left":{"concat":[{"payload":{"protocol":"ip","field":"daddr"}},{"meta":{"key":"l4proto"}},{"payload":{"protocol":"th","field":"dport"}}]},"right":"@frontends"}},{"reject":null}])",
      R"([{"vmap":{"key":{"concat":[{"payload":{"protocol":"ip","field":"daddr"}},{"meta":{"key":"l4proto"}},{"payload":{"protocol":"th","field":"dport"}}]},"data":"@services"}}])",
      R"([{"dnat":{"family":"ip","addr":{"map":{"key":{"concat":[{"numgen":{"mode":"random","mod":4}},{"payload":{"protocol":"ip","field":"daddr"}},{"meta":{"key":"l4proto"}},{"payload":{"protocol":"th","field":"dport"}}]},"data":"@endpoints"}}}}])",
      R"([{"dnat":{"family":"ip","addr":{"map":{"key":{"concat":[{"jhash":{"mod":251,"seed":1,"expr":{"concat":[{"payload":{"protocol":"ip","field":"saddr"}},{"payload":{"protocol":"th","field":"sport"}}]}}},{"payload":{"protocol":"ip","field":"daddr"}},{"meta":{"key":"l4proto"}},{"payload":{"protocol":"th","field":"dport"}}]},"data":"@endpoints"}}}}])",
      R"([{"mangle":{"key":{"meta":{"key":"mark"}},"value":{"|":[{"meta":{"key":"mark"}},16384]}}}])",
      R"([{"mangle":{"key":{"meta":{"key":"mark"}},"value":7}}])",
      R"([{"masquerade":{"flags":["fully-random"]}}])",
      R"([{"reject":{"type":"tcp reset"}}])",
      R"([{"counter":{"packets":1,"bytes":2}},{"set":{"op":"update","elem":{"elem":{"val":{"payload":{"protocol":"ip","field":"saddr"}},"timeout":30}},"set":"@seen"}}])",
      R"([{"ct timeout":"unanswered"}])",
      R"([{"map":{"op":"update","elem":{"payload":{"protocol":"ip","field":"saddr"}},"data":{"concat":[{"payload":{"protocol":"ip","field":"daddr"}},{"payload":{"protocol":"th","field":"dport"}}]},"map":"@affinity"}}])",
  };
  return list;
}

/// Commands, separated by commas, as an array's text.
inline std::string document(std::string_view commands) { return "[" + std::string(commands) + "]"; }

/// The same as a value; null when the text is no JSON.
inline pointsman::nftables::json::Value commands(std::string_view text) {
  auto parsed = pointsman::nftables::json::parse(document(text));
  return parsed.ok() ? std::move(parsed.value()) : pointsman::nftables::json::Value{};
}

/// Every kind of object and command but rules, in table `t`.
inline const std::string& objects() {
  static const std::string text =
      R"({"add":{"table":{"family":"ip","name":"t","comment":"table"}}},)"
      R"({"create":{"chain":{"family":"ip","table":"t","name":"x","comment":"plain"}}},)"
      R"({"add":{"chain":{"family":"ip","table":"t","name":"pre","type":"nat","hook":"prerouting","prio":-100,"policy":"accept"}}},)"
      R"({"add":{"set":{"family":"ip","table":"t","name":"frontends","type":["ipv4_addr","inet_proto","inet_service"],"comment":"set"}}},)"
      R"({"add":{"set":{"family":"ip","table":"t","name":"sources","type":["ipv4_addr","inet_service","ipv4_addr"],"flags":["interval"],"size":9}}},)"
      R"({"add":{"map":{"family":"ip","table":"t","name":"services","type":["ipv4_addr","inet_proto","inet_service"],"map":"verdict"}}},)"
      R"({"add":{"map":{"family":"ip","table":"t","name":"endpoints","type":["mark","ipv4_addr","inet_proto","inet_service"],"map":["ipv4_addr","inet_service"]}}},)"
      R"({"add":{"map":{"family":"ip","table":"t","name":"affinity","type":"ipv4_addr","map":["ipv4_addr","inet_service"],"flags":["dynamic","timeout"],"timeout":10800}}},)"
      R"({"add":{"ct timeout":{"family":"ip","table":"t","name":"unanswered","protocol":"udp","l3proto":"ip","policy":{"unreplied":2,"replied":120}}}},)"
      R"({"flush":{"chain":{"family":"ip","table":"t","name":"x"}}},)"
      R"({"flush":{"set":{"family":"ip","table":"t","name":"frontends"}}},)"
      R"({"delete":{"rule":{"family":"ip","table":"t","chain":"x","handle":7}}},)"
      R"({"delete":{"map":{"family":"ip","table":"t","name":"services"}}},)"
      R"({"delete":{"ct timeout":{"family":"ip","table":"t","name":"unanswered"}}},)"
      R"({"delete":{"counter":{"family":"ip","table":"t","name":"rejected"}}},)"
      R"({"delete":{"table":{"family":"ip","name":"t"}}})";
  return text;
}

inline std::string rule(std::string_view expr, std::string_view verb = "add") {
  return R"({")" + std::string(verb) + R"(":{"rule":{"family":"ip","table":"t","chain":"x","expr":)" + std::string(expr) +
         R"(,"comment":"why"}}})";
}

}  // namespace samples
