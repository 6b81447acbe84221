#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cerrno>
#include <deque>
#include <limits>

#include "netlink/answer.h"
#include "netlink/attribute_reader.h"
#include "netlink/batch.h"
#include "netlink/message_writer.h"
#include "test/check.h"

namespace {

using namespace pointsman::netlink;

constexpr std::uint16_t kCapped = NLM_F_CAPPED | NLM_F_ACK_TLVS;

// An NLMSG_ERROR datagram with NETLINK_CAP_ACK's shape; `text` and `offset` as extended ack.
Bytes answer(std::uint32_t sequence, std::int32_t error, const char* text = nullptr, std::uint32_t offset = 0) {
  MessageWriter attributes;
  attributes.begin_message(0, 0, 0, 0);
  const std::size_t start = attributes.size();
  if (text != nullptr) attributes.put_string(NLMSGERR_ATTR_MSG, text);
  if (offset != 0) attributes.put_host32(NLMSGERR_ATTR_OFFS, offset);
  const ByteView extended = attributes.bytes().subspan(start);
  Bytes datagram(NLMSG_HDRLEN + sizeof(std::int32_t) + sizeof(nlmsghdr));
  datagram.insert(datagram.end(), extended.begin(), extended.end());
  store_host32(datagram.data(), static_cast<std::uint32_t>(datagram.size()));
  store_host16(datagram.data() + 4, NLMSG_ERROR);
  store_host16(datagram.data() + 6, text == nullptr && offset == 0 ? NLM_F_CAPPED : kCapped);
  store_host32(datagram.data() + 8, sequence);
  store_host32(datagram.data() + NLMSG_HDRLEN, static_cast<std::uint32_t>(error));
  return datagram;
}

// What the receive queue holds: datagrams and errno values.
class Queue {
 public:
  Queue& datagram(Bytes bytes) {
    entries_.push_back({std::move(bytes), 0});
    return *this;
  }
  Queue& error(int code) {
    entries_.push_back({{}, code});
    return *this;
  }
  Status verdict(std::uint32_t messages) {
    return read_verdict(
        [this]() -> Result<ByteView> {
          if (entries_.empty()) return system_error(EAGAIN, "empty");
          current_ = std::move(entries_.front());
          entries_.pop_front();
          if (current_.code != 0) return system_error(current_.code, "queued");
          return ByteView(current_.bytes);
        },
        messages);
  }

 private:
  struct Entry {
    Bytes bytes;
    int code = 0;
  };
  std::deque<Entry> entries_;
  Entry current_;
};

}  // namespace

TEST(attributes_come_back) {
  MessageWriter writer;
  writer.begin_message(0x0a01, NLM_F_REQUEST, 7, 2, 10);
  writer.put_u8(1, 0xab);
  writer.put_be16(2, 0x1234);
  writer.put_be32(3, 0x12345678);
  writer.put_be64(4, 0x123456789abcdef0);
  writer.put_host32(5, 0xcafe);
  writer.put_string(6, "name");
  writer.nest(7, [&] { writer.put_bytes(8, Bytes{1, 2, 3}); });
  writer.end_message();
  CHECK(!writer.overflow());
  MessageReader messages(writer.bytes());
  const auto message = messages.next();
  CHECK(message && !messages.next() && !messages.malformed());
  CHECK_EQUAL(message->type, 0x0a01);
  CHECK_EQUAL(message->sequence, 7U);
  CHECK_EQUAL(int{*message->family()}, 2);
  CHECK_EQUAL(*message->resource(), 10);
  AttributeReader reader(message->attributes());
  CHECK_EQUAL(int{*reader.next()->u8()}, 0xab);
  CHECK_EQUAL(*reader.next()->be16(), 0x1234);
  CHECK_EQUAL(*reader.next()->be32(), 0x12345678U);
  CHECK_EQUAL(*reader.next()->be64(), 0x123456789abcdef0U);
  CHECK_EQUAL(*reader.next()->host32(), 0xcafeU);
  CHECK_EQUAL(reader.next()->string(), "name");
  AttributeReader nest(reader.next()->payload);
  CHECK_EQUAL(nest.next()->payload.size(), 3U);
  CHECK(!nest.next() && !nest.malformed());
  CHECK(!reader.next() && !reader.malformed());
}

TEST(short_payloads_have_no_value) {
  const Bytes three{1, 2, 3};
  const Attribute attribute{1, three};
  CHECK(attribute.u8() && attribute.be16());
  CHECK(!attribute.be32() && !attribute.be64() && !attribute.host32());
  CHECK_EQUAL(attribute.string().size(), 3U);
  CHECK(!Attribute{}.u8());
}

TEST(lengths_are_not_trusted) {
  for (const Bytes& bytes : {Bytes{1}, Bytes{3, 0, 1, 0}, Bytes{5, 0, 1, 0}, Bytes{0xff, 0xff, 1, 0, 9}}) {
    AttributeReader reader(bytes);
    CHECK(!reader.next());
    CHECK(reader.malformed());
  }
  // The last attribute needs no padding.
  const Bytes unpadded{5, 0, 1, 0, 9};
  AttributeReader reader(unpadded);
  CHECK_EQUAL(int{*reader.next()->u8()}, 9);
  CHECK(!reader.next() && !reader.malformed());
  for (const Bytes& bytes : {Bytes(15, 0), Bytes(16, 0), Bytes(16, 0xff)}) {
    MessageReader messages(bytes);
    CHECK(!messages.next());
    CHECK(messages.malformed());
  }
}

TEST(overflow_sticks) {
  MessageWriter bytes;
  bytes.begin_message(1, 0, 0, 0);
  bytes.put_bytes(1, Bytes(std::numeric_limits<std::uint16_t>::max() - 3));
  CHECK(bytes.overflow());
  MessageWriter nest;
  nest.begin_message(1, 0, 0, 0);
  nest.nest(1, [&] {
    for (int index = 0; index < 3; ++index) nest.put_bytes(2, Bytes(30'000));
  });
  nest.put_u8(3, 1);
  nest.end_message();
  CHECK(nest.overflow());
  MessageWriter largest;
  largest.begin_message(1, 0, 0, 0);
  largest.put_bytes(1, Bytes(std::numeric_limits<std::uint16_t>::max() - 4));
  CHECK(!largest.overflow());
}

TEST(batch_is_framed_and_acknowledged_once) {
  Batch batch(NFNL_SUBSYS_NFTABLES);
  for (int index = 0; index < 3; ++index) {
    CHECK_EQUAL(batch.begin(5, NLM_F_CREATE, 2), static_cast<std::uint32_t>(index));
    batch.end();
  }
  batch.finish();
  MessageReader reader(batch.bytes());
  const auto begin = reader.next();
  CHECK_EQUAL(begin->type, NFNL_MSG_BATCH_BEGIN);
  CHECK_EQUAL(*begin->resource(), NFNL_SUBSYS_NFTABLES);
  for (std::uint32_t sequence = 1; sequence <= 3; ++sequence) {
    const auto message = reader.next();
    CHECK_EQUAL(message->sequence, sequence);
    CHECK_EQUAL((message->flags & NLM_F_ACK) != 0, sequence == 3);
    CHECK_EQUAL(Batch::index_of(message->sequence), sequence - 1);
  }
  CHECK_EQUAL(reader.next()->type, NFNL_MSG_BATCH_END);
  CHECK(!reader.next() && !reader.malformed());
}

TEST(extended_ack_is_read) {
  const Bytes bytes = answer(3, -EEXIST, "File exists, really", 44);
  MessageReader reader(bytes);
  const auto parsed = parse_acknowledgement(*reader.next());
  CHECK(parsed.ok());
  CHECK_EQUAL(parsed.value().sequence, 3U);
  CHECK_EQUAL(parsed.value().error->code, EEXIST);
  CHECK_EQUAL(*parsed.value().error->kernel_message, "File exists, really");
  CHECK_EQUAL(*parsed.value().error->offset, 44U);
}

TEST(truncated_acks_are_decode_errors) {
  const Bytes whole = answer(3, -EEXIST, "message", 44);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    if (length >= NLMSG_HDRLEN) store_host32(cut.data(), static_cast<std::uint32_t>(length));
    MessageReader reader(cut);
    const auto message = reader.next();
    if (!message) continue;
    const auto parsed = parse_acknowledgement(*message);
    // A cut between two attributes leaves a shorter but well formed answer.
    CHECK(!parsed.ok() || parsed.value().error->code == EEXIST);
  }
  Message uncapped;
  const Bytes payload = [] {
    Bytes bytes(sizeof(std::int32_t) + sizeof(nlmsghdr));
    store_host32(bytes.data(), static_cast<std::uint32_t>(-EPERM));
    store_host32(bytes.data() + 4, 0xfffffff0);
    return bytes;
  }();
  uncapped.flags = NLM_F_ACK_TLVS;
  uncapped.payload = payload;
  CHECK(!parse_acknowledgement(uncapped).ok());
}

TEST(errno_out_of_range_is_a_decode_error) {
  for (const std::int32_t code : {1, std::numeric_limits<std::int32_t>::min()}) {
    const Bytes bytes = answer(1, code);
    MessageReader reader(bytes);
    CHECK(!parse_acknowledgement(*reader.next()).ok());
  }
}

TEST(verdict_needs_the_last_ack) {
  CHECK(Queue().datagram(answer(5, 0)).verdict(5).ok());
  const auto silent = Queue().verdict(5);
  CHECK(!silent.ok() && silent.error().kind == ErrorKind::kDecode);
  CHECK(!Queue().datagram(answer(4, 0)).verdict(5).ok());
}

TEST(verdict_is_the_first_error_although_the_last_message_is_acknowledged) {
  const auto verdict = Queue().datagram(answer(2, -ENOENT)).datagram(answer(4, -EEXIST)).datagram(answer(5, 0)).verdict(5);
  CHECK(!verdict.ok());
  CHECK_EQUAL(verdict.error().code, ENOENT);
  CHECK_EQUAL(*verdict.error().sequence, 2U);
}

TEST(overrun_leaves_the_outcome_unknown) {
  const auto lost = Queue().error(ENOBUFS).verdict(5);
  CHECK_EQUAL(lost.error().code, ENOBUFS);
  // One refusal proves that nothing happened, whatever else was lost; an ack alone does not prove that nothing was refused.
  CHECK_EQUAL(Queue().error(ENOBUFS).datagram(answer(2, -ENOENT)).verdict(5).error().code, ENOENT);
  CHECK_EQUAL(Queue().datagram(answer(5, 0)).error(ENOBUFS).verdict(5).error().code, ENOBUFS);
}

TEST(garbage_in_the_queue_is_a_decode_error) {
  for (const Bytes& bytes : {Bytes(7, 1), Bytes(40, 0xff), Bytes(16, 0)}) {
    const auto verdict = Queue().datagram(bytes).verdict(1);
    CHECK(!verdict.ok() && verdict.error().kind == ErrorKind::kDecode);
  }
}
