// A vmcompute.dll that has HNSCall alone, by which the version of HNS is asked for.
#include "link.h"

extern "C" HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR body, PWSTR* answer) {
  const stand_in::Answer answered = stand_in::ask(stand_in::narrow(method), stand_in::narrow(path), stand_in::narrow(body));
  *answer = stand_in::widen(answered.text);
  return answered.result;
}
