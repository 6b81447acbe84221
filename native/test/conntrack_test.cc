#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "conntrack/challenge.h"
#include "conntrack/flow.h"
#include "conntrack/flows.h"
#include "netlink/answer.h"
#include "netlink/attribute_reader.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using conntrack::Family;
using conntrack::FlowFilter;
using netlink::Bytes;
using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::Result;
using netlink::Status;

Bytes from_hex(std::string_view text) {
  const auto digit = [](char character) { return character <= '9' ? character - '0' : character - 'a' + 10; };
  Bytes bytes;
  for (std::size_t index = 0; index + 1 < text.size(); index += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[index]) << 4 | digit(text[index + 1])));
  }
  return bytes;
}

std::string to_hex(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Answers of Linux 6.18 to a plain IPCTNL_MSG_CT_GET dump, as received, after
//   conntrack -I -p udp -s 10.244.0.7 -d 10.96.0.10 --sport 40000 --dport 53 -r 10.244.1.10 -q 10.244.0.7
//     --reply-port-src 5353 --reply-port-dst 40000 -t 100 -w 7
constexpr std::string_view kUdp =
    "c80000000001220001000000df290000020000003400018014000180080001000af40007080002000a60000a1c000280050001001100"
    "0000060002009c40000006000300003500003400028014000180080001000af4010a080002000af400071c0002800500010011000000"
    "0600020014e90000060003009c40000006001200000700000800030000000008080008000000000008000c00eddbd5a408000b000000"
    "000108000700000000631c001880080001000000000008000200000000000800030000000000";
//   conntrack -I -p icmp -s 10.244.0.7 -d 10.96.0.10 --icmp-type 8 --icmp-code 0 --icmp-id 9 -t 100
constexpr std::string_view kIcmp =
    "d00000000001220001000000df290000020000003c00018014000180080001000af40007080002000a60000a24000280050001000100"
    "00000600040000090000050005000800000005000600000000003c00028014000180080001000a60000a080002000af4000724000280"
    "05000100010000000600040000090000050005000000000005000600000000000800030000000008080008000000000008000c005615"
    "a3af08000b000000000108000700000000631c001880080001000000000008000200000000000800030000000000";
//   conntrack -I -p sctp -s fd00:244::7 -d fd00:96::a --sport 40000 --dport 53 -t 100 --state ESTABLISHED
//     --orig-vtag 1 --reply-vtag 1 --orig-zone 8
constexpr std::string_view kSctp =
    "180100000001220001000000df2900000a000000540001802c00018014000300fd000244000000000000000000000007140004"
    "00fd00009600000000000000000000000a1c0002800500010084000000060002009c400000060003000035000006000300000800004c"
    "0002802c00018014000300fd00009600000000000000000000000a14000400fd0002440000000000000000000000071c000280050001"
    "00840000000600020000350000060003009c4000000800030000000808080008000000000008000c00161346bf08000b000000000108"
    "00070000000063200004801c0003800500010004000000080002000100000008000300010000001c0018800800010000000000080002"
    "00000000000800030000000000";

constexpr std::string_view kUdpRecord =
    "0af40007"  // original source
    "0a60000a"  // original destination
    "0af4010a"  // reply source
    "0af40007"  // reply destination
    "9c40003514e99c40"
    "0007"  // zone
    "1100"
    "eddbd5a4"  // conntrack -L -o id: id=3990607268
    "00000008";

constexpr std::string_view kSctpRecord =
    "fd000244000000000000000000000007fd00009600000000000000000000000a"
    "fd00009600000000000000000000000afd000244000000000000000000000007"
    "9c40003500359c40"
    "0008"  // of the original direction alone
    "8404"  // established
    "161346bf"  // id=370362047
    "00000808";

FlowFilter filter_of(Family family, std::uint8_t protocol) {
  FlowFilter filter;
  filter.family = family;
  filter.protocol = protocol;
  return filter;
}

FlowFilter udp_filter() { return filter_of(Family::kIPv4, 17); }

FlowFilter sctp_filter() { return filter_of(Family::kIPv6, 132); }

/// Decodes every message of a datagram; the hex of the records, or `error`.
std::string decode(ByteView datagram, const FlowFilter& filter) {
  netlink::MessageReader reader(datagram);
  Bytes records;
  while (const auto message = reader.next()) {
    if (!conntrack::decode_flow(*message, filter, records).ok()) return "error";
  }
  return reader.malformed() ? "error" : to_hex(records);
}

TEST(conntrack_decodes_what_the_kernel_sent) {
  CHECK_EQUAL(decode(from_hex(kUdp), udp_filter()), kUdpRecord);
  CHECK_EQUAL(decode(from_hex(kSctp), sctp_filter()), kSctpRecord);
}

TEST(conntrack_filters_again) {
  const Bytes flow = from_hex(kUdp);
  FlowFilter filter = udp_filter();
  filter.destination = Bytes{10, 96, 0, 10};
  filter.port = 53;
  CHECK_EQUAL(decode(flow, filter), kUdpRecord);
  filter.port = 5353;
  CHECK(decode(flow, filter).empty());
  filter = udp_filter();
  filter.destination = Bytes{10, 244, 1, 10};
  CHECK(decode(flow, filter).empty());
  filter = udp_filter();
  filter.protocol = 132;
  CHECK(decode(flow, filter).empty());
  filter = filter_of(Family::kIPv6, 17);
  CHECK(decode(flow, filter).empty());
}

TEST(conntrack_leaves_out_what_was_answered) {
  FlowFilter filter = udp_filter();
  filter.unanswered = true;
  CHECK_EQUAL(decode(from_hex(kUdp), filter), kUdpRecord);
  std::string answered(kUdp);
  answered.replace(answered.find("0800030000000008"), 16, "080003000000000a");
  CHECK(decode(from_hex(answered), filter).empty());
  // Status 0 under the mask of IPS_SEEN_REPLY, behind the other filter.
  const std::string request = to_hex(conntrack::encode_list(filter, 1, true));
  CHECK(request.ends_with("0c0019800800010008000000" "0800030000000000" "08001a0000000002"));
}

TEST(conntrack_finds_flows_by_who_answers) {
  FlowFilter filter = udp_filter();
  filter.translated = true;
  CHECK(decode(from_hex(kUdp), filter).empty());
  std::string answered(kUdp);
  const std::size_t status = answered.find("0800030000000008080008") + 8;
  answered.replace(status, 8, "00000002");
  const std::string record(std::string(kUdpRecord).substr(0, kUdpRecord.size() - 8) + "00000002");
  CHECK_EQUAL(decode(from_hex(answered), filter), record);
  filter.reply_sources = from_hex("0af40109" "0af4010a" "0af4010b");
  CHECK_EQUAL(decode(from_hex(answered), filter), record);
  filter.reply_sources = from_hex("0af4010a");
  CHECK_EQUAL(decode(from_hex(answered), filter), record);
  for (const char* others : {"", "0af40109", "0af4010b", "00000000" "0af40109" "0af4010b" "ffffffff"}) {
    filter.reply_sources = from_hex(others);
    CHECK(decode(from_hex(answered), filter).empty());
  }
  // One address the kernel compares as well, and the status: both were seen on Linux 6.18.
  filter.reply_sources = from_hex("0af4010a");
  const std::string request = to_hex(conntrack::encode_list(filter, 1, true));
  CHECK(request.find("10000280" "0c000180" "08000100" "0af4010a") != std::string::npos);
  CHECK(request.find("14001980" "08000100" "08000000" "08000200" "01000000") != std::string::npos);
  CHECK(request.ends_with("0800030000000022" "08001a0000000022"));
  filter.reply_sources = from_hex("0af4010a" "0af4010b");
  CHECK(to_hex(conntrack::encode_list(filter, 1, true)).find("0af4010a") == std::string::npos);
  // For IPv6 the kernel's comparison is the wrong way round.
  filter = sctp_filter();
  filter.reply_sources = from_hex("fd00009600000000000000000000000a");
  CHECK(to_hex(conntrack::encode_list(filter, 1, true)).find("fd000096") == std::string::npos);
}

/// The sum of all 16-bit words, carried over: all ones where a checksum in them is right.
std::uint16_t sum_of(ByteView bytes, std::uint32_t sum) {
  for (std::size_t index = 0; index + 1 < bytes.size(); index += 2) sum += netlink::load_be16(bytes.data() + index);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

TEST(conntrack_challenges_in_the_name_of_what_was_asked_for) {
  const Bytes packet = conntrack::encode_challenge(Family::kIPv4, from_hex(kUdpRecord), 0x01020304);
  CHECK_EQUAL(to_hex(ByteView(packet).first(36)),
              "4500000000000000" "4006" "0000" "0a60000a" "0af40007" "0035" "9c40" "01020304" "00000000" "5012" "0000");
  CHECK(packet.size() == 40);
  constexpr std::uint32_t kTcp = 6 + 20;
  CHECK(sum_of(ByteView(packet).subspan(12), kTcp) == 0xffff);

  const Bytes other = conntrack::encode_challenge(Family::kIPv6, from_hex(kSctpRecord), 0xffffffff);
  CHECK_EQUAL(to_hex(ByteView(other).first(56)),
              "60000000" "0014" "06" "40" "fd00009600000000000000000000000a" "fd000244000000000000000000000007" "0035"
              "9c40" "ffffffff" "00000000" "5012" "0000");
  CHECK(other.size() == 60);
  CHECK(sum_of(ByteView(other).subspan(8), kTcp) == 0xffff);
}

TEST(conntrack_passes_over_flows_without_ports) {
  FlowFilter filter = udp_filter();
  CHECK(decode(from_hex(kIcmp), filter).empty());
  filter.protocol = 1;
  CHECK(decode(from_hex(kIcmp), filter).empty());
}

TEST(conntrack_refuses_a_flow_without_id) {
  // The id's attribute type, 0c 00, becomes an unknown one.
  std::string text(kUdp);
  const std::size_t id = text.find("08000c00eddbd5a4");
  text.replace(id + 4, 4, "7f00");
  CHECK_EQUAL(decode(from_hex(text), udp_filter()), "error");
}

TEST(conntrack_survives_every_truncation) {
  for (const auto& [text, filter] : {std::pair{kUdp, udp_filter()}, std::pair{kSctp, sctp_filter()}}) {
    const Bytes whole = from_hex(text);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      // Once as a datagram cut short, once with a header that owns up to it. Copies, so that a read past the end is seen.
      Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      CHECK(length == 0 || decode(cut, filter) == "error");
      if (length < NLMSG_HDRLEN) continue;
      netlink::store_host32(cut.data(), static_cast<std::uint32_t>(length));
      const std::string decoded = decode(cut, filter);
      CHECK(decoded == "error" || decoded.empty() ||
            decoded.size() == 2 * conntrack::record_length(filter.family));
    }
  }
}

TEST(conntrack_survives_every_changed_byte) {
  for (const auto& [text, filter] : {std::pair{kUdp, udp_filter()}, std::pair{kSctp, sctp_filter()}}) {
    const Bytes whole = from_hex(text);
    for (std::size_t index = 0; index < whole.size(); ++index) {
      for (int value = 0; value < 256; ++value) {
        Bytes changed = whole;
        changed[index] = static_cast<std::uint8_t>(value);
        const std::string decoded = decode(changed, filter);
        CHECK(decoded == "error" || decoded.empty() ||
              decoded.size() == 2 * conntrack::record_length(filter.family));
      }
    }
  }
}

TEST(conntrack_asks_for_no_more_than_needed) {
  // What conntrack -L -f ipv4 sends.
  CHECK_EQUAL(to_hex(conntrack::encode_list(udp_filter(), 1, false)), "1400000001010103010000000000000002000000");
  FlowFilter filter = udp_filter();
  filter.destination = Bytes{10, 96, 0, 10};
  filter.port = 53;
  CHECK_EQUAL(to_hex(conntrack::encode_list(filter, 2, true)),
        "4400000001010103020000000000000002000000"
        "24000180"
        "0c00018008000200"
        "0a60000a"
        "14000280"
        "0500010011000000"
        "0600030000350000"
        // CTA_FILTER: destination, protocol and destination port, in host order.
        "0c001980080001002a000000");
  filter = sctp_filter();
  CHECK_EQUAL(to_hex(conntrack::encode_list(filter, 3, true)),
        "300000000101010303000000000000000a000000"
        "10000180"
        "0c0002800500010084000000"
        "0c0019800800010008000000");
  // Never by an IPv6 address, which the kernel compares the wrong way round.
  filter.destination = Bytes(16, 1);
  filter.port = 53;
  CHECK_EQUAL(to_hex(conntrack::encode_list(filter, 3, true)),
        "380000000101010303000000000000000a000000"
        "18000180"
        "14000280"
        "0500010084000000"
        "0600030000350000"
        "0c0019800800010028000000");
}

TEST(conntrack_deletes_by_tuple_zone_and_id) {
  netlink::MessageWriter writer;
  conntrack::encode_delete(writer, 9, Family::kIPv4, from_hex(kUdpRecord));
  CHECK(!writer.overflow());
  CHECK_EQUAL(to_hex(writer.bytes()),
        "5800000002010500090000000000000002000000"
        "34000180"
        "14000180080001000af40007080002000a60000a"
        "1c0002800500010011000000060002009c4000000600030000350000"
        "0600120000070000"
        "08000c00eddbd5a4");
  // Zone 0 is not named: kernels without zones refuse the attribute.
  Bytes record = from_hex(kUdpRecord);
  record[25] = 0;
  netlink::MessageWriter plain;
  conntrack::encode_delete(plain, 9, Family::kIPv4, record);
  CHECK(plain.size() == writer.size() - 8);
}

TEST(conntrack_describes_a_flow) {
  CHECK_EQUAL(conntrack::describe(Family::kIPv4, from_hex(kUdpRecord)),
        "udp 10.244.0.7:40000 > 10.96.0.10:53, replies from 10.244.1.10:5353");
  CHECK_EQUAL(conntrack::describe(Family::kIPv6, from_hex(kSctpRecord)),
        "sctp [fd00:244::7]:40000 > [fd00:96::a]:53, replies from [fd00:96::a]:53");
}

/// Plays one dump per outcome: the flows in `answers`, then the errno, 0 for success.
struct ScriptedDump {
  struct Attempt {
    std::vector<std::string> answers;
    int code;
  };
  std::vector<Attempt> attempts;
  std::vector<std::string> requests = {};

  Result<Bytes> list(const FlowFilter& filter) {
    return conntrack::list_flows(
        [this](ByteView request, const std::function<Status(const Message&)>& on_message) -> Status {
          const Attempt attempt = attempts[std::min(requests.size(), attempts.size() - 1)];
          requests.push_back(to_hex(request));
          for (const std::string& answer : attempt.answers) {
            const Bytes datagram = from_hex(answer);
            netlink::MessageReader reader(datagram);
            while (const auto message = reader.next()) {
              if (auto taken = on_message(*message); !taken.ok()) return taken;
            }
          }
          if (attempt.code != 0) return netlink::system_error(attempt.code, "scripted");
          return Done{};
        },
        filter);
  }
};

/// The captured UDP flow with another id, and so another flow.
std::string other_udp() {
  std::string text(kUdp);
  text.replace(text.find("eddbd5a4"), 8, "00000001");
  return text;
}

std::string listed(const Result<Bytes>& result) {
  return result.ok() ? to_hex(result.value()) : "errno " + std::to_string(result.error().code);
}

const std::string kUdpText(kUdp);
const std::string kUdpRecordText(kUdpRecord);

TEST(conntrack_lists_without_filter_where_the_kernel_has_none) {
  ScriptedDump dump{{{{}, EOPNOTSUPP}, {{kUdpText, std::string(kIcmp)}, 0}}};
  CHECK_EQUAL(listed(dump.list(udp_filter())), kUdpRecord);
  CHECK(dump.requests.size() == 2);
  CHECK_EQUAL(dump.requests[1], to_hex(conntrack::encode_list(udp_filter(), 2, false)));
}

TEST(conntrack_reports_other_errors_at_once) {
  ScriptedDump dump{{{{kUdpText}, EPERM}}};
  CHECK_EQUAL(listed(dump.list(udp_filter())), "errno 1");
  CHECK(dump.requests.size() == 1);
}

TEST(conntrack_repeats_an_interrupted_dump) {
  ScriptedDump dump{{{{other_udp()}, EINTR}, {{}, EINTR}, {{kUdpText}, 0}}};
  // A whole dump is the truth: what only the interrupted ones saw is gone.
  CHECK_EQUAL(listed(dump.list(udp_filter())), kUdpRecord);
  CHECK(dump.requests.size() == 3);
}

TEST(conntrack_unites_dumps_that_are_always_interrupted) {
  std::string changed_status = kUdpText;
  changed_status.replace(changed_status.find("0800030000000008"), 16, "080003000000000e");
  ScriptedDump dump{{{{kUdpText}, EINTR}, {{}, EINTR}, {{changed_status, other_udp()}, EINTR}}};
  const auto result = dump.list(udp_filter());
  CHECK(dump.requests.size() == 1 + netlink::Socket::kMaxRestarts);
  CHECK(result.ok());
  if (!result.ok()) return;
  // Two flows, each once, though one was seen with two states.
  CHECK(result.value().size() == 2 * conntrack::record_length(Family::kIPv4));
  const std::string text = to_hex(result.value());
  CHECK(text.find("eddbd5a4") != std::string::npos);
  CHECK(text.find("00000001000000") != std::string::npos);
}

TEST(conntrack_reports_garbage_in_a_dump) {
  std::string garbage = kUdpText;
  // The original tuple claims more than the message holds.
  garbage.replace(garbage.find("34000180"), 4, "ff00");
  ScriptedDump dump{{{{kUdpText, garbage}, 0}}};
  const auto result = dump.list(udp_filter());
  CHECK(!result.ok());
  CHECK(result.ok() || result.error().kind == netlink::ErrorKind::kDecode);
}

/// The captured flow as one that ended, with counters.
Bytes ended_udp() {
  Bytes bytes = from_hex(kUdp);
  netlink::MessageWriter writer;
  writer.begin_message(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, 0, 0, 2);
  const Bytes head = writer.take();
  netlink::MessageWriter counters;
  counters.begin_message(0, 0, 0, 2);
  for (const auto& [type, packets] : {std::pair{CTA_COUNTERS_ORIG, 3U}, std::pair{CTA_COUNTERS_REPLY, 2U}}) {
    counters.nest(static_cast<std::uint16_t>(type), [&, count = packets] {
      counters.put_be64(CTA_COUNTERS_PACKETS, count);
      counters.put_be64(CTA_COUNTERS_BYTES, 100 * count);
    });
  }
  counters.end_message();
  const Bytes message = counters.take();
  std::copy(head.begin() + 4, head.begin() + 6, bytes.begin() + 4);
  bytes.insert(bytes.end(), message.begin() + static_cast<std::ptrdiff_t>(head.size()), message.end());
  netlink::store_host32(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  return bytes;
}

TEST(flows_that_were_translated_are_told_with_what_they_carried) {
  const Bytes bytes = ended_udp();
  netlink::MessageReader reader(bytes);
  const auto message = reader.next();
  CHECK(message && conntrack::is_end(*message));
  if (!message) return;
  const auto flow = conntrack::decode_translated(*message);
  CHECK(flow.ok() && flow.value());
  if (!flow.ok() || !flow.value()) return;
  CHECK_EQUAL(to_hex(flow.value()->way),
        "0a60000a000000000000000000000000" "0035" "11" "04"
        "0af4010a000000000000000000000000" "14e9" "0000");
  CHECK(flow.value()->request.packets == 3 && flow.value()->request.bytes == 300);
  CHECK(flow.value()->reply.packets == 2 && flow.value()->reply.bytes == 200);
  const Bytes plain = from_hex(kUdp);
  netlink::MessageReader listing(plain);
  const auto listed_flow = conntrack::decode_translated(*listing.next());
  CHECK(listed_flow.ok() && listed_flow.value() && listed_flow.value()->identity == flow.value()->identity);
}

TEST(flows_that_were_not_translated_do_not_count) {
  for (const std::string_view text : {kIcmp, kSctp}) {
    const Bytes bytes = from_hex(text);
    netlink::MessageReader reader(bytes);
    const auto flow = conntrack::decode_translated(*reader.next());
    CHECK(flow.ok() && !flow.value());
  }
}

}  // namespace
