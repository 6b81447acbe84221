#pragma once

#include <utility>
#include <variant>

namespace pointsman {

/// A value or the reason there is none. Check `ok()` before taking either side.
template <typename T, typename E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  E& error() { return *std::get_if<1>(&state_); }
  const E& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, E> state_;
};

struct Done {};

}  // namespace pointsman
