#pragma once

#include <napi.h>

namespace pointsman::addon {

/// conntrackList(filter: FlowFilter): Promise<FlowListing>
Napi::Value conntrack_list(const Napi::CallbackInfo& info);
/// conntrackDelete(family: NftFamily, records: Uint8Array): Promise<FlowDeletion>
Napi::Value conntrack_delete(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
