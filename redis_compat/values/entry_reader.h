// Redis's own compact encodings of small collections, as they lie in RDB: strings one behind the
// other in one piece of memory.
//
// Pure; one thread. They come from clients: nothing here trusts them, and all of a piece is checked
// by the time that its end is reached.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_ENTRY_READER_H_
#define ONETRIP_REDIS_COMPAT_VALUES_ENTRY_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {

class EntryReader {
 public:
  enum class Taken : uint8_t { kEntry, kEnd, kDamaged };

  virtual ~EntryReader() = default;
  // Gives the next entry, which lives until the next call. REQUIRES: it has given nothing else so
  // far.
  virtual Taken Next(std::string_view* entry) = 0;

 protected:
  explicit EntryReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] uint8_t ByteAt(size_t at) const { return static_cast<uint8_t>(bytes_[at]); }
  // Little-endian. REQUIRES: they are there.
  [[nodiscard]] uint64_t UnsignedAt(size_t at, size_t bytes) const;
  [[nodiscard]] int64_t SignedAt(size_t at, size_t bytes) const;
  std::string_view AsText(int64_t number) {
    return {text_, static_cast<size_t>(FormatInt64(number, text_) - text_)};
  }

  const std::string_view bytes_;
  size_t at_ = 0;  // the next entry; 0: its head has not been read
  uint64_t taken_ = 0;

 private:
  char text_[kInt64TextMax];
};

// `bytes` outlive the reader. A zipmap gives fields and values in turn.
std::unique_ptr<EntryReader> ReadListpack(std::string_view bytes);
std::unique_ptr<EntryReader> ReadZiplist(std::string_view bytes);
std::unique_ptr<EntryReader> ReadZipmap(std::string_view bytes);
std::unique_ptr<EntryReader> ReadIntset(std::string_view bytes);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_ENTRY_READER_H_
