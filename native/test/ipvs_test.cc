#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/ipset/ip_set_bitmap.h>
#include <linux/netfilter/ipset/ip_set_hash.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "accounting/objects.h"
#include "ipset/message.h"
#include "ipvs/message.h"
#include "ipvs/remembered.h"
#include "netlink/answer.h"
#include "netlink/digest.h"
#include "netlink/message_writer.h"
#include "route/message.h"
#include "route/watch.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using netlink::Bytes;
using netlink::Message;

Message only_message(netlink::ByteView bytes) {
  netlink::MessageReader reader(bytes);
  const auto message = reader.next();
  CHECK(message.has_value());
  CHECK(!reader.next() && !reader.malformed());
  return message.value_or(Message{});
}

Message cut(Message message, std::size_t bytes) {
  message.payload = message.payload.subspan(0, message.payload.size() - bytes);
  return message;
}

}  // namespace

TEST(ipvs_services_come_back_as_they_were_sent) {
  const ipvs::Service web{AF_INET, 6, {10, 96, 0, 1}, 443, 0};
  const ipvs::Service dns{AF_INET6, 17, Bytes(16, 0xfd), 53, 0};
  const ipvs::Service marked{AF_INET, 0, {}, 0, 7};
  const ipvs::ServiceState state{"mh", IP_VS_SVC_F_PERSISTENT | IP_VS_SVC_F_SCHED2, 10800, 24};
  for (const ipvs::Service& service : {web, dns, marked}) {
    netlink::MessageWriter writer;
    ipvs::encode_service(writer, 30, 2, ipvs::Verb::kSet, service, state);
    const Message message = only_message(writer.bytes());
    CHECK_EQUAL(message.type, 30);
    CHECK_EQUAL(message.flags, NLM_F_REQUEST | NLM_F_ACK);
    // genlmsghdr's command.
    CHECK_EQUAL(message.payload[0], IPVS_CMD_SET_SERVICE);
    const auto decoded = ipvs::decode_service(message);
    CHECK(decoded.ok());
    if (!decoded.ok()) continue;
    const auto& [found, held] = decoded.value();
    CHECK_EQUAL(found.family, service.family);
    CHECK_EQUAL(found.protocol, service.protocol);
    CHECK(found.address == service.address);
    CHECK_EQUAL(found.port, service.port);
    CHECK_EQUAL(found.mark, service.mark);
    CHECK_EQUAL(held.scheduler, state.scheduler);
    CHECK_EQUAL(held.flags, state.flags);
    CHECK_EQUAL(held.timeout, state.timeout);
    CHECK_EQUAL(held.prefix_length, state.prefix_length);
    CHECK(!ipvs::decode_service(cut(message, message.payload.size() - 4)).ok());
  }
  CHECK_EQUAL(ipvs::describe(web), "tcp 10.96.0.1:443");
  CHECK_EQUAL(ipvs::describe(marked), "mark 7");
}

TEST(digests_do_not_look_at_the_order_of_records_but_at_their_fields) {
  using netlink::Digest;
  const auto digest = [](std::initializer_list<Digest::Record> records) {
    Digest of;
    for (const Digest::Record& record : records) of.add(record);
    return of.value();
  };
  const Bytes address{10, 0, 0, 1};
  const Digest::Record one = Digest::Record().bytes(address).number(80);
  const Digest::Record other = Digest::Record().bytes(address).number(81);
  CHECK_EQUAL(digest({one, other}), digest({other, one}));
  CHECK(digest({one}) != digest({other}));
  CHECK(digest({one, one}) != digest({one}));
  CHECK(digest({}) != 0);
  CHECK(digest({one}) < (std::uint64_t{1} << 53));
  const std::string left = "ab";
  CHECK(digest({Digest::Record().bytes(left).bytes(std::string())}) != digest({Digest::Record().bytes(std::string()).bytes(left)}));
}

TEST(ipvs_deletions_say_no_more_than_which) {
  const ipvs::Service web{AF_INET, 6, {10, 96, 0, 1}, 443, 0};
  netlink::MessageWriter service;
  ipvs::encode_service(service, 30, 2, ipvs::Verb::kDelete, web, {});
  CHECK_EQUAL(only_message(service.bytes()).payload[0], IPVS_CMD_DEL_SERVICE);
  netlink::MessageWriter destination;
  const std::uint8_t endpoint[] = {10, 0, 0, 1, 0x1f, 0x90};
  ipvs::encode_destination(destination, 30, 2, ipvs::Verb::kDelete, web, endpoint, 1);
  const Message message = only_message(destination.bytes());
  CHECK_EQUAL(message.payload[0], IPVS_CMD_DEL_DEST);
  const auto decoded = ipvs::decode_destination(message, AF_INET);
  CHECK(decoded.ok() && decoded.value().weight == 0 && decoded.value().port == 8080);
}

// What one endpoint costs, in bytes, as docs/performance.md has it.
TEST(ipvs_destinations_are_sent_in_small_messages) {
  const Bytes endpoint(6, 1);
  const Bytes endpoint6(18, 1);
  netlink::MessageWriter four;
  ipvs::encode_destination(four, 30, 2, ipvs::Verb::kNew, {AF_INET, 6, {10, 96, 0, 1}, 443, 0}, endpoint, 1);
  CHECK_EQUAL(four.bytes().size(), 140U);
  netlink::MessageWriter six;
  ipvs::encode_destination(six, 30, 2, ipvs::Verb::kNew, {AF_INET6, 6, Bytes(16, 0xfd), 443, 0}, endpoint6, 1);
  CHECK_EQUAL(six.bytes().size(), 140U);
}

TEST(ipvs_destinations_are_read_with_their_connections) {
  const Bytes address{10, 0, 0, 1};
  const std::uint8_t port[] = {0x1f, 0x90};
  netlink::MessageWriter writer;
  writer.begin_message(30, 0, 1, IPVS_CMD_NEW_DEST);
  writer.nest(IPVS_CMD_ATTR_DEST, [&] {
    writer.put_bytes(IPVS_DEST_ATTR_ADDR, address);
    writer.put_bytes(IPVS_DEST_ATTR_PORT, port);
    writer.put_host32(IPVS_DEST_ATTR_FWD_METHOD, IP_VS_CONN_F_DROUTE);
    writer.put_host32(IPVS_DEST_ATTR_WEIGHT, 100);
    writer.put_host32(IPVS_DEST_ATTR_ACTIVE_CONNS, 2);
    writer.put_host32(IPVS_DEST_ATTR_INACT_CONNS, 3);
    writer.put_host32(IPVS_DEST_ATTR_PERSIST_CONNS, 9);
    writer.put_host16(IPVS_DEST_ATTR_ADDR_FAMILY, AF_INET);
  });
  writer.end_message();
  const Message message = only_message(writer.bytes());
  const auto read = ipvs::decode_destination(message, AF_INET);
  CHECK(read.ok() && read.value().address == address);
  CHECK(read.ok() && read.value().port == 8080 && read.value().weight == 100);
  CHECK(read.ok() && read.value().connections == 5 && read.value().method == IP_VS_CONN_F_DROUTE);
  const auto other = ipvs::decode_destination(message, AF_INET6);
  CHECK(other.ok() && other.value().address.empty());
  CHECK(!ipvs::decode_destination(cut(message, message.payload.size() - 4), AF_INET).ok());
  const Bytes request = ipvs::encode_destinations(30, 3, {AF_INET, 6, {10, 96, 0, 1}, 443, 0});
  CHECK_EQUAL(only_message(request).payload[0], IPVS_CMD_GET_DEST);
  CHECK(!ipvs::decode_destination(only_message(request), AF_INET).ok());
  const Bytes list = ipvs::encode_list(30, 2);
  CHECK_EQUAL(only_message(list).flags, NLM_F_REQUEST | NLM_F_DUMP);
}

TEST(ipvs_timeouts_come_back) {
  const Bytes encoded = ipvs::encode_set_timeouts(30, 1, {900, 120, 300});
  const auto timeouts = ipvs::decode_timeouts(only_message(encoded));
  CHECK(timeouts.ok() && timeouts.value().tcp == 900 && timeouts.value().tcp_fin == 120 && timeouts.value().udp == 300);
  const Bytes question = ipvs::encode_get_timeouts(30, 1);
  CHECK(!ipvs::decode_timeouts(only_message(question)).ok());
}

TEST(ipvs_family_has_a_number) {
  const Bytes request = ipvs::encode_family_request(1);
  CHECK_EQUAL(only_message(request).type, GENL_ID_CTRL);
  CHECK_EQUAL(only_message(request).payload[0], CTRL_CMD_GETFAMILY);
  CHECK(!ipvs::decode_family(only_message(request)).ok());
  const std::uint8_t number[2] = {37, 0};
  netlink::MessageWriter writer;
  writer.begin_message(GENL_ID_CTRL, 0, 1, CTRL_CMD_NEWFAMILY);
  writer.put_string(CTRL_ATTR_FAMILY_NAME, "IPVS");
  writer.put_bytes(CTRL_ATTR_FAMILY_ID, number);
  writer.end_message();
  const auto type = ipvs::decode_family(only_message(writer.bytes()));
  CHECK(type.ok() && type.value() == netlink::load_host16(number));
}

TEST(ipset_requests_name_their_set) {
  netlink::MessageWriter writer;
  ipset::encode_destroy(writer, 1, "KUBE-CLUSTER-IP");
  const Message message = only_message(writer.bytes());
  CHECK_EQUAL(message.type, NFNL_SUBSYS_IPSET << 8 | IPSET_CMD_DESTROY);
  CHECK_EQUAL(message.flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL);
  const auto name = ipset::decode_name(message);
  CHECK(name.ok() && name.value() == "KUBE-CLUSTER-IP");
  const Bytes list = ipset::encode_list_names(1);
  CHECK(!ipset::decode_name(only_message(list)).ok());
  CHECK_EQUAL(only_message(list).flags, NLM_F_REQUEST | NLM_F_DUMP);
}

TEST(ipset_elements_come_back_as_they_were_sent) {
  for (const ipset::Type type : {ipset::Type::kIp, ipset::Type::kIpPort, ipset::Type::kIpPortIp, ipset::Type::kIpPortNet, ipset::Type::kNetNet, ipset::Type::kPort}) {
    for (const std::uint8_t family : {AF_INET, AF_INET6}) {
      const std::uint8_t own = type == ipset::Type::kPort ? AF_UNSPEC : family;
      const ipset::Layout layout = ipset::layout_of(type, own);
      Bytes elements(3 * layout.length());
      for (std::size_t at = 0; at < elements.size(); ++at) elements[at] = static_cast<std::uint8_t>(at);
      const ipset::Comments comments{"one", std::nullopt, "three"};
      netlink::MessageWriter writer;
      CHECK_EQUAL(ipset::encode_elements(writer, 1, {true, "S", type, own, elements, comments}, 0), 3U);
      ipset::Listing listing;
      CHECK(!ipset::decode_list(only_message(writer.bytes()), listing).ok());
      listing.type = ipset::name_of(type);
      listing.family = own;
      listing.elements.emplace();
      CHECK(ipset::decode_list(only_message(writer.bytes()), listing).ok());
      CHECK(listing.elements == elements && listing.plain && listing.element_comments == comments);
      // With another type of set it is no such element.
      listing.type = ipset::name_of(type == ipset::Type::kIp ? ipset::Type::kPort : ipset::Type::kIp);
      CHECK(!ipset::decode_list(only_message(writer.bytes()), listing).ok());
      const ipset::Comments longest(1000, std::string(255, 'x'));
      netlink::MessageWriter part;
      const std::size_t fit = ipset::encode_elements(part, 1, {true, "S", type, own, Bytes(1000 * layout.length()), longest}, 10);
      CHECK(!part.overflow() && part.size() > 60'000 && fit > 100 && fit < 990);
    }
  }
  const ipset::Layout layout = ipset::layout_of(ipset::Type::kIpPortNet, AF_INET);
  CHECK_EQUAL(ipset::describe(layout, Bytes{10, 96, 0, 1, 0, 80, 6, 10, 0, 0, 0, 8}), "10.96.0.1:80 tcp 10.0.0.0/8");
  CHECK_EQUAL(ipset::describe(ipset::layout_of(ipset::Type::kNetNet, AF_INET), Bytes{10, 96, 0, 1, 10, 0, 0, 0, 32, 8}), "10.96.0.1/32 10.0.0.0/8");
  CHECK_EQUAL(ipset::describe(ipset::layout_of(ipset::Type::kPort, AF_UNSPEC), Bytes{0, 80}), "80");
}

TEST(ipset_tells_which_element_failed_and_why) {
  const ipset::Layout layout = ipset::layout_of(ipset::Type::kIpPort, AF_INET);
  netlink::MessageWriter request;
  ipset::encode_elements(request, 7, {true, "S", ipset::Type::kIpPort, AF_INET, Bytes(3 * layout.length()), {}}, 0);
  Bytes echoed(request.bytes().begin(), request.bytes().end());
  // What the kernel does: the number of the element in the place of the message's own.
  const auto answer = [&](std::uint32_t line) {
    const std::size_t at = NLMSG_HDRLEN + 4 + 8 + 8 + NLA_HDRLEN;
    netlink::store_host32(echoed.data() + at, line);
    Bytes payload(4);
    netlink::store_host32(payload.data(), static_cast<std::uint32_t>(-IPSET_ERR_HASH_FULL));
    payload.insert(payload.end(), echoed.begin(), echoed.end());
    Message message;
    message.type = NLMSG_ERROR;
    message.payload = payload;
    const auto parsed = netlink::parse_acknowledgement(message);
    CHECK(parsed.ok() && parsed.value().error);
    CHECK(parsed.ok() && !ipset::failed_element(netlink::parse_acknowledgement(cut(message, echoed.size() - NLMSG_HDRLEN)).value()));
    return parsed.ok() ? ipset::failed_element(parsed.value()) : std::nullopt;
  };
  CHECK(answer(2) == 1);
  CHECK(!answer(0));
  const auto full = ipset::translated(netlink::system_error(IPSET_ERR_HASH_FULL, ""), ipset::Type::kIpPort);
  CHECK_EQUAL(full.code, ENOSPC);
  const auto outside = ipset::translated(netlink::system_error(IPSET_ERR_BITMAP_RANGE, ""), ipset::Type::kPort);
  CHECK_EQUAL(outside.code, ERANGE);
  CHECK_EQUAL(ipset::translated(netlink::system_error(ENOMEM, "x"), {}).message, "x");
}

TEST(accounting_requests_name_their_object) {
  const Bytes creation = accounting::encode_new(1, "seen");
  const Message message = only_message(creation);
  CHECK_EQUAL(message.type, NFNL_SUBSYS_ACCT << 8 | NFNL_MSG_ACCT_NEW);
  CHECK_EQUAL(message.flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
  const Bytes question = accounting::encode_get(1, "seen");
  CHECK(!accounting::decode_packets(only_message(question)).ok());
  netlink::MessageWriter writer;
  writer.begin_message(NFNL_SUBSYS_ACCT << 8 | NFNL_MSG_ACCT_NEW, 0, 1, AF_UNSPEC);
  writer.put_string(NFACCT_NAME, "seen");
  writer.put_be64(NFACCT_BYTES, 1);
  writer.put_be64(NFACCT_PKTS, 5'000'000'000);
  writer.end_message();
  const auto packets = accounting::decode_packets(only_message(writer.bytes()));
  CHECK(packets.ok() && packets.value() == 5'000'000'000);
}

TEST(route_addresses_of_a_link) {
  const auto address_of = [&](std::initializer_list<std::pair<std::uint16_t, Bytes>> attributes) {
    Bytes payload(sizeof(ifaddrmsg));
    const std::uint32_t index = 5;
    std::memcpy(payload.data() + offsetof(ifaddrmsg, ifa_index), &index, sizeof index);
    for (const auto& [type, value] : attributes) {
      const std::uint16_t header[2] = {static_cast<std::uint16_t>(4 + value.size()), type};
      const auto* start = reinterpret_cast<const std::uint8_t*>(header);
      payload.insert(payload.end(), start, start + sizeof header);
      payload.insert(payload.end(), value.begin(), value.end());
    }
    Message message;
    message.payload = payload;
    const auto decoded = route::decode_address(message);
    if (decoded.ok()) CHECK_EQUAL(decoded.value().link, index);
    return decoded.ok() ? decoded.value().address : Bytes{0};
  };
  const Bytes v4{10, 96, 0, 1};
  const Bytes peer{10, 96, 0, 2};
  const Bytes v6(16, 0xfd);
  CHECK(address_of({{IFA_ADDRESS, peer}, {IFA_LOCAL, v4}}) == v4);
  CHECK(address_of({{IFA_ADDRESS, v6}}) == v6);
  CHECK(address_of({{IFA_ADDRESS, {1, 2, 3}}}) == Bytes{0});
  CHECK(!route::decode_address(Message{}).ok());
}

TEST(route_requests_are_whole_messages) {
  const Bytes addresses = route::encode_addresses(1);
  const Message list = only_message(addresses);
  CHECK_EQUAL(list.type, RTM_GETADDR);
  CHECK_EQUAL(list.payload.size(), sizeof(ifaddrmsg));
  const Bytes deletion = route::encode_delete_link(1, "kube-ipvs0");
  const Message message = only_message(deletion);
  CHECK_EQUAL(message.type, RTM_DELLINK);
  CHECK_EQUAL(message.flags, NLM_F_REQUEST | NLM_F_ACK);
  CHECK(route::decode_link_name(message) == "kube-ipvs0");
  const Bytes creation = route::encode_new_dummy(1, "kube-ipvs0");
  CHECK(route::decode_link_name(only_message(creation)) == "kube-ipvs0");
  CHECK(!route::decode_link_name(Message{}));
  const Bytes v6(16, 0xfd);
  netlink::MessageWriter writer;
  route::encode_address(writer, 1, true, 5, v6);
  CHECK_EQUAL(only_message(writer.bytes()).type, RTM_NEWADDR);
  const auto decoded = route::decode_address(only_message(writer.bytes()));
  CHECK(decoded.ok() && decoded.value().link == 5 && decoded.value().address == v6);
}

TEST(route_changes_name_links) {
  netlink::MessageWriter writer;
  ifinfomsg link{};
  const auto* header = reinterpret_cast<const std::uint8_t*>(&link);
  writer.begin_message(RTM_NEWLINK, 0, 0, netlink::ByteView(header, sizeof link));
  writer.put_string(IFLA_IFNAME, "eth0");
  writer.end_message();
  route::encode_address(writer, 1, false, 5, Bytes{10, 96, 0, 1});
  route::encode_address(writer, 1, false, 6, Bytes{10, 96, 0, 2});
  const auto name_of = [](std::uint32_t index) { return index == 5 ? std::string("kube-ipvs0") : std::string(); };
  route::Change change;
  CHECK(!change.any());
  route::read_change(writer.bytes(), name_of, change);
  CHECK(change.links == (std::set<std::string>{"eth0", "kube-ipvs0"}) && !change.missed);
  route::Change broken;
  route::read_change(writer.bytes().first(writer.size() - 1), name_of, broken);
  CHECK(broken.missed);
  broken.merge(change);
  CHECK(broken.missed && broken.links.size() == 2);
}

TEST(ipvs_connections_tell_where_persistence_sends_a_client) {
  // Lines of /proc/net/ip_vs_conn, Linux 6.1.
  const std::string v4 = "TCP 0AF4010B 0000 0A60002A 0050 0AF4020A 1F90 NONE          10799";
  const std::string v6 =
      "UDP fd00:0244:0001:0000:0000:0000:0000:000b 0000 fd00:0010:0096:0000:0000:0000:0000:002a 0035 "
      "fd00:0244:0002:0000:0000:0000:0000:000a 0035 ASSURED           3\n";
  const ipvs::Service web{AF_INET, 6, {10, 96, 0, 42}, 80, 0};
  const ipvs::Service dns{AF_INET6, 17, {0xfd, 0, 0, 0x10, 0, 0x96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a}, 53, 0};
  const Bytes client4{10, 244, 1, 11};
  const Bytes client6{0xfd, 0, 2, 0x44, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb};
  const auto changed = [&](std::size_t at, char to) {
    std::string line = v4;
    line[at] = to;
    return ipvs::remembered_by(line, web, client4);
  };
  CHECK(ipvs::remembered_by(v4, web, client4) == Bytes({10, 244, 2, 10, 0x1f, 0x90}));
  CHECK(ipvs::remembered_by(v6, dns, client6) ==
        Bytes({0xfd, 0, 2, 0x44, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa, 0, 53}));
  CHECK(!ipvs::remembered_by(v6, web, client4) && !ipvs::remembered_by(v4, dns, client6));
  // Another protocol, client, client's port, service, its port.
  for (const std::size_t at : {0, 11, 16, 25, 30}) CHECK(!changed(at, '7'));
  // The client's port is one: a connection and no memory. No digit, too few digits.
  CHECK(!changed(14, '9') && !changed(35, 'x') && !changed(35, ' '));
  CHECK(!ipvs::remembered_by("Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData", web, client4));
  CHECK(!ipvs::remembered_by(v4.substr(0, 40), web, client4) && !ipvs::remembered_by("", web, client4));
  const ipvs::Service ftp{AF_INET, 6, {10, 96, 0, 42}, 21, 0};
  CHECK(ipvs::remembered_by("TCP 0AF4010B 0000 0A60002A 0000 0AF4020A 0000 NONE  9", ftp, client4) == Bytes({10, 244, 2, 10, 0, 0}));
}
