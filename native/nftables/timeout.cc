#include "nftables/timeout.h"

#include <linux/in.h>
#include <linux/netfilter/nfnetlink_cttimeout.h>

#include <algorithm>

namespace pointsman::nftables {

namespace {

constexpr std::array kTcpStates{
    TimeoutState{"syn_sent", CTA_TIMEOUT_TCP_SYN_SENT},       TimeoutState{"syn_recv", CTA_TIMEOUT_TCP_SYN_RECV},
    TimeoutState{"established", CTA_TIMEOUT_TCP_ESTABLISHED}, TimeoutState{"fin_wait", CTA_TIMEOUT_TCP_FIN_WAIT},
    TimeoutState{"close_wait", CTA_TIMEOUT_TCP_CLOSE_WAIT},   TimeoutState{"last_ack", CTA_TIMEOUT_TCP_LAST_ACK},
    TimeoutState{"time_wait", CTA_TIMEOUT_TCP_TIME_WAIT},     TimeoutState{"close", CTA_TIMEOUT_TCP_CLOSE},
    TimeoutState{"syn_sent2", CTA_TIMEOUT_TCP_SYN_SENT2},     TimeoutState{"retrans", CTA_TIMEOUT_TCP_RETRANS},
    TimeoutState{"unack", CTA_TIMEOUT_TCP_UNACK},
};
static_assert(kTcpStates.size() == kMostTimeoutStates);

constexpr std::array kUdpStates{
    TimeoutState{"unreplied", CTA_TIMEOUT_UDP_UNREPLIED},
    TimeoutState{"replied", CTA_TIMEOUT_UDP_REPLIED},
};

constexpr std::array kTimeoutProtocols{
    TimeoutProtocol{"tcp", IPPROTO_TCP, kTcpStates},
    TimeoutProtocol{"udp", IPPROTO_UDP, kUdpStates},
};

template <typename Matches>
const TimeoutProtocol* find_protocol(Matches matches) {
  const auto found = std::find_if(kTimeoutProtocols.begin(), kTimeoutProtocols.end(), matches);
  return found == kTimeoutProtocols.end() ? nullptr : &*found;
}

}  // namespace

const TimeoutProtocol* timeout_protocol(std::string_view name) {
  return find_protocol([=](const TimeoutProtocol& each) { return each.name == name; });
}

const TimeoutProtocol* timeout_protocol(std::uint8_t number) {
  return find_protocol([=](const TimeoutProtocol& each) { return each.number == number; });
}

std::string timeout_text(const Timeout& timeout) {
  const TimeoutProtocol* protocol = timeout_protocol(timeout.protocol);
  if (protocol == nullptr) return "ct timeout " + std::to_string(timeout.protocol);
  std::string text = "ct timeout " + std::string(protocol->name);
  for (std::size_t index = 0; index < protocol->states.size(); ++index) {
    if (!timeout.seconds[index]) continue;
    text += " " + std::string(protocol->states[index].name) + " " + std::to_string(*timeout.seconds[index]);
  }
  return text;
}

}  // namespace pointsman::nftables
