#include <algorithm>
#include <span>

#include "test/check.h"

/// check [NAME ...]: runs all tests but those named.
int main(int count, char** words) {
  const auto left_out = std::span(words, static_cast<std::size_t>(count)).subspan(1);
  for (const check::Test& test : check::tests()) {
    if (std::ranges::find(left_out, std::string_view(test.name)) != left_out.end()) {
      std::printf("left out: %s\n", test.name);
      continue;
    }
    const int before = check::failures();
    test.run();
    if (check::failures() != before) std::fprintf(stderr, "FAILED %s\n", test.name);
  }
  std::printf("%zu tests, %d failures\n", check::tests().size(), check::failures());
  return check::failures() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
