// A computenetwork.dll without HNS: every call is passed on to the server of link.h. Handles are the ids of what was opened.
#include "link.h"

#include <computenetwork.h>

#include <memory>
#include <thread>

namespace {

using stand_in::Answer;
using stand_in::ask;
using stand_in::guid_text;
using stand_in::narrow;
using stand_in::widen;

HRESULT pass(const Answer& answer, PWSTR* text, PWSTR* record) {
  if (text != nullptr) *text = answer.text.empty() ? nullptr : widen(answer.text);
  if (record != nullptr) *record = answer.record.empty() ? nullptr : widen(answer.record);
  return answer.result;
}

HRESULT open(const char* call, REFGUID id, PCWSTR settings, void** object, PWSTR* record, const std::string& more = "") {
  const Answer answer = ask(call, guid_text(id) + more, narrow(settings));
  // What was opened or created answers its id.
  if (SUCCEEDED(answer.result)) *object = new std::string(answer.text);
  return pass(answer, nullptr, record);
}

const std::string& id_of(void* object) { return *static_cast<std::string*>(object); }

HRESULT close(void* object) {
  delete static_cast<std::string*>(object);
  return S_OK;
}

/// Waits for lines of the server, each a number of HCN_NOTIFICATIONS.
struct Listener {
  stand_in::Connection connection;
  std::thread thread;
};

}  // namespace

extern "C" {

HRESULT WINAPI HcnEnumerateNetworks(PCWSTR, PWSTR* ids, PWSTR* record) { return pass(ask("enumerate.network", "-", ""), ids, record); }
HRESULT WINAPI HcnOpenNetwork(REFGUID id, PHCN_NETWORK network, PWSTR* record) {
  return open("open.network", id, nullptr, network, record);
}
HRESULT WINAPI HcnQueryNetworkProperties(HCN_NETWORK network, PCWSTR, PWSTR* properties, PWSTR* record) {
  return pass(ask("query.network", id_of(network), ""), properties, record);
}
HRESULT WINAPI HcnCloseNetwork(HCN_NETWORK network) { return close(network); }

HRESULT WINAPI HcnEnumerateEndpoints(PCWSTR, PWSTR* ids, PWSTR* record) { return pass(ask("enumerate.endpoint", "-", ""), ids, record); }
HRESULT WINAPI HcnCreateEndpoint(HCN_NETWORK network, REFGUID id, PCWSTR settings, PHCN_ENDPOINT endpoint, PWSTR* record) {
  return open("create.endpoint", id, settings, endpoint, record, "/" + id_of(network));
}
HRESULT WINAPI HcnOpenEndpoint(REFGUID id, PHCN_ENDPOINT endpoint, PWSTR* record) {
  return open("open.endpoint", id, nullptr, endpoint, record);
}
HRESULT WINAPI HcnQueryEndpointProperties(HCN_ENDPOINT endpoint, PCWSTR, PWSTR* properties, PWSTR* record) {
  return pass(ask("query.endpoint", id_of(endpoint), ""), properties, record);
}
HRESULT WINAPI HcnDeleteEndpoint(REFGUID id, PWSTR* record) { return pass(ask("delete.endpoint", guid_text(id), ""), nullptr, record); }
HRESULT WINAPI HcnCloseEndpoint(HCN_ENDPOINT endpoint) { return close(endpoint); }

HRESULT WINAPI HcnEnumerateLoadBalancers(PCWSTR, PWSTR* ids, PWSTR* record) {
  return pass(ask("enumerate.loadBalancer", "-", ""), ids, record);
}
HRESULT WINAPI HcnCreateLoadBalancer(REFGUID id, PCWSTR settings, PHCN_LOADBALANCER balancer, PWSTR* record) {
  return open("create.loadBalancer", id, settings, balancer, record);
}
HRESULT WINAPI HcnOpenLoadBalancer(REFGUID id, PHCN_LOADBALANCER balancer, PWSTR* record) {
  return open("open.loadBalancer", id, nullptr, balancer, record);
}
HRESULT WINAPI HcnModifyLoadBalancer(HCN_LOADBALANCER balancer, PCWSTR settings, PWSTR* record) {
  return pass(ask("modify.loadBalancer", id_of(balancer), narrow(settings)), nullptr, record);
}
HRESULT WINAPI HcnQueryLoadBalancerProperties(HCN_LOADBALANCER balancer, PCWSTR, PWSTR* properties, PWSTR* record) {
  return pass(ask("query.loadBalancer", id_of(balancer), ""), properties, record);
}
HRESULT WINAPI HcnDeleteLoadBalancer(REFGUID id, PWSTR* record) {
  return pass(ask("delete.loadBalancer", guid_text(id), ""), nullptr, record);
}
HRESULT WINAPI HcnCloseLoadBalancer(HCN_LOADBALANCER balancer) { return close(balancer); }

HRESULT WINAPI HcnRegisterServiceCallback(HCN_NOTIFICATION_CALLBACK callback, void* context, HCN_CALLBACK* handle) {
  auto listener = std::make_unique<Listener>();
  if (!listener->connection.open() || !listener->connection.send_all("watch - 0\n")) {
    return HRESULT_FROM_WIN32(RPC_S_SERVER_UNAVAILABLE);
  }
  // The server's first line says that it has heard.
  std::string heard;
  if (!listener->connection.line(heard)) return E_FAIL;
  listener->thread = std::thread([callback, context, &connection = listener->connection] {
    for (std::string line; connection.line(line);) callback(std::strtoul(line.c_str(), nullptr, 10), context, S_OK, nullptr);
  });
  *handle = listener.release();
  return S_OK;
}

HRESULT WINAPI HcnUnregisterServiceCallback(HCN_CALLBACK handle) {
  const std::unique_ptr<Listener> listener(static_cast<Listener*>(handle));
  listener->connection.shut();
  listener->thread.join();
  return S_OK;
}

}  // extern "C"
