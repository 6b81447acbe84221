#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

/// Tests register themselves; CHECK prints what failed and goes on, and the program's exit status shows whether any
/// did.
namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> registered;
  return registered;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registration {
  Registration(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline void that(bool holds, const char* condition, const char* file, int line) {
  if (holds) return;
  ++failures();
  std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
}

template <typename Left, typename Right>
void equal(const Left& left, const Right& right, const char* text, const char* file, int line) {
  if (left == right) return;
  ++failures();
  std::cerr << file << ":" << line << ": " << text << "\n  found    " << left << "\n  expected " << right << "\n";
}

}  // namespace check

#define TEST(name)                                                \
  static void name();                                             \
  static const check::Registration registration_##name(#name, name); \
  static void name()

#define CHECK(condition) check::that(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(left, right) check::equal(left, right, #left, __FILE__, __LINE__)
