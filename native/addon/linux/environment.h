#pragma once

#include <napi.h>

#include <memory>

#include "netlink/socket_pool.h"
#include "nftables/watch.h"
#include "polling/poller.h"

namespace pointsman::addon {

/// The addon's only state, one for each environment: each worker thread has its own, and it goes when the thread goes. Asynchronous calls
/// hold on to what they use.
struct Environment {
  std::shared_ptr<netlink::SocketPool> sockets = std::make_shared<netlink::SocketPool>();
  std::shared_ptr<netlink::SocketPool> route_sockets = std::make_shared<netlink::SocketPool>(NETLINK_ROUTE);
  std::shared_ptr<nftables::Watches> watches = std::make_shared<nftables::Watches>();
  std::shared_ptr<polling::Poller> poller = std::make_shared<polling::Poller>();
};

inline void attach_environment(Napi::Env env) { env.SetInstanceData(std::make_unique<Environment>().release()); }

/// The environment's sockets for netfilter; calls take one, and give it back when they read every answer.
inline std::shared_ptr<netlink::SocketPool> sockets_of(Napi::Env env) {
  return env.GetInstanceData<Environment>()->sockets;
}

/// The sockets for links and addresses, in the same way.
inline std::shared_ptr<netlink::SocketPool> route_sockets_of(Napi::Env env) {
  return env.GetInstanceData<Environment>()->route_sockets;
}

/// The environment's running watches.
inline std::shared_ptr<nftables::Watches> watches_of(Napi::Env env) {
  return env.GetInstanceData<Environment>()->watches;
}

inline std::shared_ptr<polling::Poller> poller_of(Napi::Env env) { return env.GetInstanceData<Environment>()->poller; }

}  // namespace pointsman::addon
