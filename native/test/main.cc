#include "test/check.h"

int main() {
  for (const check::Test& test : check::tests()) {
    const int before = check::failures();
    test.run();
    if (check::failures() != before) std::fprintf(stderr, "FAILED %s\n", test.name);
  }
  std::printf("%zu tests, %d failures\n", check::tests().size(), check::failures());
  return check::failures() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
