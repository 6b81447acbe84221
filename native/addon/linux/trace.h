#pragma once

#include <napi.h>

namespace pointsman::addon {

/// nftTrace(transaction: NftTransaction, onTrace: (trace: NftTrace) => void): () => void
Napi::Value nft_trace(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
