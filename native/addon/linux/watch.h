#pragma once

#include <napi.h>

namespace pointsman::addon {

/// nftWatch(table: string, onChange: (change: NftForeignChange) => void): () => void
Napi::Value nft_watch(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
