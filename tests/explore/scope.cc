#include "tests/explore/scope.h"

#include <cinttypes>
#include <cstdio>

namespace onetrip {

std::string Scope::WordName(uint64_t word) const {
  char text[24];
  std::snprintf(text, sizeof(text), "%" PRIx64, word);
  return text;
}

std::string Scope::CellName(RemoteAddr at) const { return "+" + std::to_string(at.offset); }

}  // namespace onetrip
