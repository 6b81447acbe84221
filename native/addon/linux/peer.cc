#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/subsystems.h"

namespace pointsman::addon {

namespace {

/// SO_PEERCRED (unix(7)) is what the kernel kept when the peer listened or connected. Asking for it waits for nothing.
Napi::Value peer_user(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const int descriptor = Argument(info[0], "descriptor", misuse).descriptor();
  if (misuse.failed()) return misuse.raise();
  struct ucred credentials {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return info.Env().Null();
  return Napi::Number::New(info.Env(), credentials.uid);
}

/// Filled up to the whole length of sun_path without the NUL that makes it abstract, as versions of libuv differ in whether they do that.
Napi::Value peer_name(const Napi::CallbackInfo& info) {
  std::string name = "pointsman-node-proxy";
  name.resize(sizeof(sockaddr_un::sun_path) - 1, '.');
  return Napi::String::New(info.Env(), name);
}

bool set_option(int descriptor, int level, int option, int value) {
  return setsockopt(descriptor, level, option, &value, sizeof(value)) == 0;
}

/// With TCP_USER_TIMEOUT the kernel counts by it instead of by unanswered probes (tcp(7)), for idle connections and for unacknowledged data.
Napi::Value limit_silence(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const int descriptor = Argument(info[0], "descriptor", misuse).descriptor();
  const int idle = static_cast<int>(Argument(info[1], "idleSeconds", misuse).integer(1, 3600));
  const int limit = static_cast<int>(Argument(info[2], "limitMs", misuse).integer(1, 3'600'000));
  if (misuse.failed()) return misuse.raise();
  const bool set = set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                   set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, idle) &&
                   set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 1) &&
                   set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, limit);
  return Napi::Boolean::New(info.Env(), set);
}

/// Measured by the kernel's own time of the last packet with data or an acknowledgement: answers to its probes are such packets.
Napi::Value silent_ms(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const int descriptor = Argument(info[0], "descriptor", misuse).descriptor();
  if (misuse.failed()) return misuse.raise();
  struct tcp_info state {};
  socklen_t size = sizeof(state);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &state, &size) != 0) return info.Env().Null();
  return Napi::Number::New(info.Env(), std::min(state.tcpi_last_data_recv, state.tcpi_last_ack_recv));
}

}  // namespace

Napi::Object peer_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<peer_name>("peerName");
  functions.add<peer_user>("peerUser");
  functions.add<limit_silence>("limitSilence");
  functions.add<silent_ms>("silentMs");
  return functions.object();
}

}  // namespace pointsman::addon
