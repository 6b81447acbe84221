#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

#include "accounting/objects.h"
#include "ipset/sets.h"
#include "ipvs/services.h"
#include "netlink/answer.h"
#include "netlink/message_writer.h"
#include "route/link.h"
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
  for (const ipvs::Service& service : {web, dns, marked}) {
    const Bytes encoded = ipvs::encode_delete(30, 2, service);
    const Message message = only_message(encoded);
    CHECK_EQUAL(message.type, 30);
    CHECK_EQUAL(message.flags, NLM_F_REQUEST | NLM_F_ACK);
    // genlmsghdr's command.
    CHECK_EQUAL(message.payload[0], IPVS_CMD_DEL_SERVICE);
    const auto decoded = ipvs::decode_service(message);
    CHECK(decoded.ok());
    if (!decoded.ok()) continue;
    CHECK_EQUAL(decoded.value().family, service.family);
    CHECK_EQUAL(decoded.value().protocol, service.protocol);
    CHECK(decoded.value().address == service.address);
    CHECK_EQUAL(decoded.value().port, service.port);
    CHECK_EQUAL(decoded.value().mark, service.mark);
    CHECK(!ipvs::decode_service(cut(message, message.payload.size() - 4)).ok());
  }
}

TEST(ipvs_connections_of_a_destination_are_added) {
  netlink::MessageWriter writer;
  writer.begin_message(30, 0, 1, IPVS_CMD_NEW_DEST);
  writer.nest(IPVS_CMD_ATTR_DEST, [&] {
    writer.put_host32(IPVS_DEST_ATTR_ACTIVE_CONNS, 2);
    writer.put_host32(IPVS_DEST_ATTR_INACT_CONNS, 3);
    writer.put_host32(IPVS_DEST_ATTR_PERSIST_CONNS, 9);
  });
  writer.end_message();
  const auto connections = ipvs::decode_connections(only_message(writer.bytes()));
  CHECK(connections.ok() && connections.value() == 5);
  const Bytes request = ipvs::encode_destinations(30, 3, {AF_INET, 6, {10, 96, 0, 1}, 443, 0});
  CHECK_EQUAL(only_message(request).payload[0], IPVS_CMD_GET_DEST);
  CHECK(!ipvs::decode_connections(only_message(request)).ok());
  const Bytes list = ipvs::encode_list(30, 2);
  CHECK_EQUAL(only_message(list).flags, NLM_F_REQUEST | NLM_F_DUMP);
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
  const Bytes destroy = ipset::encode_destroy(1, "KUBE-CLUSTER-IP");
  const Message message = only_message(destroy);
  CHECK_EQUAL(message.type, NFNL_SUBSYS_IPSET << 8 | IPSET_CMD_DESTROY);
  const auto name = ipset::decode_name(message);
  CHECK(name.ok() && name.value() == "KUBE-CLUSTER-IP");
  const Bytes list = ipset::encode_list(1);
  CHECK(!ipset::decode_name(only_message(list)).ok());
  CHECK_EQUAL(only_message(list).flags, NLM_F_REQUEST | NLM_F_DUMP);
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

TEST(route_addresses_of_one_link) {
  const auto address_of = [](std::uint32_t index, std::initializer_list<std::pair<std::uint16_t, Bytes>> attributes) {
    Bytes payload(sizeof(ifaddrmsg));
    std::memcpy(payload.data() + offsetof(ifaddrmsg, ifa_index), &index, sizeof index);
    for (const auto& [type, value] : attributes) {
      const std::uint16_t header[2] = {static_cast<std::uint16_t>(4 + value.size()), type};
      const auto* start = reinterpret_cast<const std::uint8_t*>(header);
      payload.insert(payload.end(), start, start + sizeof header);
      payload.insert(payload.end(), value.begin(), value.end());
    }
    Message message;
    message.payload = payload;
    const auto decoded = route::decode_address(message, 5);
    return decoded.ok() ? decoded.value() : Bytes{0};
  };
  const Bytes v4{10, 96, 0, 1};
  const Bytes peer{10, 96, 0, 2};
  const Bytes v6(16, 0xfd);
  CHECK(address_of(5, {{IFA_ADDRESS, peer}, {IFA_LOCAL, v4}}) == v4);
  CHECK(address_of(5, {{IFA_ADDRESS, v6}}) == v6);
  CHECK(address_of(6, {{IFA_ADDRESS, v6}}).empty());
  CHECK(address_of(5, {{IFA_ADDRESS, {1, 2, 3}}}) == Bytes{0});
  CHECK(!route::decode_address(Message{}, 5).ok());
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
  const auto* name = reinterpret_cast<const char*>(message.payload.data()) + sizeof(ifinfomsg) + sizeof(rtattr);
  CHECK_EQUAL(std::string(name), "kube-ipvs0");
}
