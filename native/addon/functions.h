#pragma once

#include <napi.h>

namespace pointsman::addon {

/// The functions of one subsystem, by the names of its interface in src/native.
class Functions {
 public:
  explicit Functions(Napi::Env env) : env_(env), object_(Napi::Object::New(env)) {}

  template <Napi::Value (*call)(const Napi::CallbackInfo&)>
  void add(const char* name) {
    object_.Set(name, Napi::Function::New<call>(env_, name));
  }

  Napi::Object object() const { return object_; }

 private:
  Napi::Env env_;
  Napi::Object object_;
};

}  // namespace pointsman::addon
