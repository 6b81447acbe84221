#pragma once

#include <napi.h>

namespace pointsman::addon {

/// nftCompile(family: NftFamily, table: string, json: string): NftTableListing
Napi::Value nft_compile(const Napi::CallbackInfo& info);
/// nftEncode(transaction: NftTransaction): Uint8Array
Napi::Value nft_encode(const Napi::CallbackInfo& info);
/// nftTransact(transaction: NftTransaction): Promise<NftAck>
Napi::Value nft_transact(const Napi::CallbackInfo& info);
/// nftList(family: NftFamily, table: string, elements: readonly string[] | null): Promise<NftTableListing | null>
Napi::Value nft_list(const Napi::CallbackInfo& info);
/// nftElements(family: NftFamily, table: string, sets: readonly string[]): Promise<readonly NftSetListing[]>
Napi::Value nft_elements(const Napi::CallbackInfo& info);
/// nftHas(family: NftFamily, table: string, set: string, keyLength: number, keys: Uint8Array): Promise<readonly boolean[]>
Napi::Value nft_has(const Napi::CallbackInfo& info);
/// nftGeneration(): Promise<number>
Napi::Value nft_generation(const Napi::CallbackInfo& info);
/// nftMaxBatch(): number
Napi::Value nft_max_batch(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
