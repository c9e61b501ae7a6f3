// FuzzInput: a fuzz target's input, read from its beginning. What is not there any more reads as
// zeros, so that every input is a whole one.
#ifndef ONETRIP_TESTS_FUZZ_FUZZ_INPUT_H_
#define ONETRIP_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace onetrip {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size)
      : left_(reinterpret_cast<const std::byte*>(data), size) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }

  // A number as it lies in memory.
  template <typename Number>
  Number Take() {
    Number number{};
    const std::span<const std::byte> bytes = TakeBytes(sizeof(number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  uint8_t TakeByte() { return Take<uint8_t>(); }

  // As many as there are, `count` at most.
  std::span<const std::byte> TakeBytes(size_t count) {
    const std::span<const std::byte> taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::string TakeText(size_t count) {
    const std::span<const std::byte> bytes = TakeBytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string TakeRest() { return TakeText(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_FUZZ_FUZZ_INPUT_H_
