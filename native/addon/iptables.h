#pragma once

#include <napi.h>

namespace pointsman::addon {

/// iptablesFlavors(family: IptablesFamily): Promise<readonly { flavor: IptablesFlavor; version: string }[]>
Napi::Value iptables_flavors(const Napi::CallbackInfo& info);
/// iptablesEncode(transaction: IptablesTransaction): string
Napi::Value iptables_encode(const Napi::CallbackInfo& info);
/// iptablesDigests(transaction: IptablesTransaction): Promise<readonly string[]>
Napi::Value iptables_digests(const Napi::CallbackInfo& info);
/// iptablesRestore(transaction: IptablesTransaction): Promise<IptablesAck>
Napi::Value iptables_restore(const Napi::CallbackInfo& info);
/// iptablesList(family, flavor, tables: readonly IptablesTable[], textOf: readonly string[]): Promise<readonly IptablesChainListing[]>
Napi::Value iptables_list(const Napi::CallbackInfo& info);
/// iptablesRemembering(lists: readonly string[], source: Uint8Array, seconds: number): Promise<number | null>
Napi::Value iptables_remembering(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
