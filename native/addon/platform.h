#pragma once

#include <napi.h>

#include <string>

namespace pointsman::addon {

// What each platform's folder has.

/// Attaches what the environment needs, and sets the subsystems of this platform by their names in NativeAddon (src/native/contract.ts).
void export_subsystems(Napi::Env env, Napi::Object exports);

/// The name of an error: `EPERM`.
std::string error_name(int number);
/// In words: `Operation not permitted`.
std::string error_meaning(int number);
/// What may help against it; empty: nothing is known.
std::string error_advice(int number);

}  // namespace pointsman::addon
