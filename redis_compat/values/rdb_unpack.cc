#include "redis_compat/values/rdb_unpack.h"

#include <span>
#include <utility>

namespace onetrip {
namespace {

// A compressed string grows by no more.
constexpr uint64_t kGrowthMax = 88;

}  // namespace

StringUnpacker::State StringUnpacker::Begin(DumpedString string) {
  string_ = std::move(string);
  decompressor_.reset();
  decompressed_ = LargeMemory();
  if (string_.form != DumpedString::Form::kCompressed) return State::kDone;
  if (string_.value_bytes == 0 || string_.value_bytes / kGrowthMax > string_.bytes.size()) {
    return State::kDamaged;
  }
  decompressed_ = LargeMemory::TryMake(string_.value_bytes);
  if (decompressed_.start() == nullptr) return State::kNoMemory;
  const std::span<char> to(reinterpret_cast<char*>(decompressed_.start()), string_.value_bytes);
  decompressor_.emplace(string_.bytes, to);
  return State::kMore;
}

StringUnpacker::State StringUnpacker::Advance(size_t bytes) {
  if (!decompressor_->Advance(bytes)) return State::kDamaged;
  return decompressor_->is_done() ? State::kDone : State::kMore;
}

std::string_view StringUnpacker::bytes() const {
  switch (string_.form) {
    case DumpedString::Form::kPlain:
      return string_.bytes;
    case DumpedString::Form::kInteger:
      return string_.integer;
    case DumpedString::Form::kCompressed:
      break;
  }
  return {reinterpret_cast<const char*>(decompressed_.start()), string_.value_bytes};
}

}  // namespace onetrip
