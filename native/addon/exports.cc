#include <napi.h>

#include "addon/accounting.h"
#include "addon/conntrack.h"
#include "addon/environment.h"
#include "addon/iptables.h"
#include "addon/ipvs.h"
#include "addon/nftables.h"
#include "addon/watch.h"

namespace pointsman::addon {

namespace {

// The names and their order are those of NativeAddon in src/native/contract.ts and of what it extends; a test compares them.
Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  attach_environment(env);
  exports.Set("nftCompile", Napi::Function::New<nft_compile>(env, "nftCompile"));
  exports.Set("nftEncode", Napi::Function::New<nft_encode>(env, "nftEncode"));
  exports.Set("nftTransact", Napi::Function::New<nft_transact>(env, "nftTransact"));
  exports.Set("nftList", Napi::Function::New<nft_list>(env, "nftList"));
  exports.Set("nftElements", Napi::Function::New<nft_elements>(env, "nftElements"));
  exports.Set("nftHas", Napi::Function::New<nft_has>(env, "nftHas"));
  exports.Set("nftGeneration", Napi::Function::New<nft_generation>(env, "nftGeneration"));
  exports.Set("nftMaxBatch", Napi::Function::New<nft_max_batch>(env, "nftMaxBatch"));
  exports.Set("nftWatch", Napi::Function::New<nft_watch>(env, "nftWatch"));
  exports.Set("conntrackList", Napi::Function::New<conntrack_list>(env, "conntrackList"));
  exports.Set("conntrackDelete", Napi::Function::New<conntrack_delete>(env, "conntrackDelete"));
  exports.Set("iptablesFlavors", Napi::Function::New<iptables_flavors>(env, "iptablesFlavors"));
  exports.Set("iptablesEncode", Napi::Function::New<iptables_encode>(env, "iptablesEncode"));
  exports.Set("iptablesDigests", Napi::Function::New<iptables_digests>(env, "iptablesDigests"));
  exports.Set("iptablesRestore", Napi::Function::New<iptables_restore>(env, "iptablesRestore"));
  exports.Set("iptablesList", Napi::Function::New<iptables_list>(env, "iptablesList"));
  exports.Set("iptablesRemembering", Napi::Function::New<iptables_remembering>(env, "iptablesRemembering"));
  exports.Set("accountCreate", Napi::Function::New<account_create>(env, "accountCreate"));
  exports.Set("accountPackets", Napi::Function::New<account_packets>(env, "accountPackets"));
  exports.Set("ipvsList", Napi::Function::New<ipvs_list>(env, "ipvsList"));
  exports.Set("ipvsDelete", Napi::Function::New<ipvs_delete>(env, "ipvsDelete"));
  exports.Set("ipsetNames", Napi::Function::New<ipset_names>(env, "ipsetNames"));
  exports.Set("ipsetDestroy", Napi::Function::New<ipset_destroy>(env, "ipsetDestroy"));
  exports.Set("linkAddresses", Napi::Function::New<link_addresses>(env, "linkAddresses"));
  exports.Set("linkDelete", Napi::Function::New<link_delete>(env, "linkDelete"));
  return exports;
}

}  // namespace

NODE_API_MODULE(pointsman, initialize)

}  // namespace pointsman::addon
