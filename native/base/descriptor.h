#pragma once

#include <unistd.h>

#include <utility>

namespace pointsman {

/// An owned file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.take()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    set(other.take());
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void set(int number) {
    close();
    number_ = number;
  }
  void close() {
    if (number_ >= 0) ::close(take());
  }
  /// From now on it is the caller's.
  int take() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace pointsman
