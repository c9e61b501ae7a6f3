#include "redis_compat/values/entry_reader.h"

#include "redis_compat/values/listpack.h"

namespace onetrip {
namespace {

constexpr uint8_t kEnd = 0xff;      // the last byte of ziplists and zipmaps
constexpr uint64_t kMany = 0xffff;  // the count in a head that says nothing

class ListpackReader final : public EntryReader {
 public:
  explicit ListpackReader(std::string_view bytes) : EntryReader(bytes), cursor_(bytes) {}

  Taken Next(std::string_view* entry) override {
    if (taken_ == 0 && !LoadListpackHead(bytes_, &count_)) return Taken::kDamaged;
    if (cursor_.is_at_end()) {
      return count_ == kListpackMany || count_ == taken_ ? Taken::kEnd : Taken::kDamaged;
    }
    ListpackEntry next;
    if (!cursor_.Next(&next)) return Taken::kDamaged;
    *entry = next.is_number ? AsText(next.number) : next.text;
    ++taken_;
    return Taken::kEntry;
  }

 private:
  ListpackCursor cursor_;
  uint64_t count_ = 0;
};

// Bytes of a total size of four bytes, where the last entry lies, a count of two, then entries: the
// size of the one before, encoding and length, and the bytes.
class ZiplistReader final : public EntryReader {
 public:
  explicit ZiplistReader(std::string_view bytes) : EntryReader(bytes) {}

  Taken Next(std::string_view* entry) override {
    if (at_ == 0 && !ReadHead()) return Taken::kDamaged;
    if (ByteAt(at_) == kEnd) {
      const bool is_sound = at_ == last_ && (count_ == kMany || count_ == taken_) &&
                            (taken_ == 0 || tail_ == at_ - size_before_);
      return is_sound ? Taken::kEnd : Taken::kDamaged;
    }
    const size_t head = ByteAt(at_) < kBigSize ? 1 : 5;
    if (head >= last_ - at_) return Taken::kDamaged;
    const uint64_t size_before = head == 1 ? ByteAt(at_) : UnsignedAt(at_ + 1, 4);
    size_t begin = at_ + head;
    size_t size = 0;
    bool is_number = false;
    if (size_before != size_before_ || !ReadLength(&begin, &size, &is_number) ||
        size > last_ - begin) {
      return Taken::kDamaged;
    }
    if (is_number) {
      *entry = AsText(size == 0 ? (ByteAt(begin - 1) & 0xf) - 1 : SignedAt(begin, size));
    } else {
      *entry = bytes_.substr(begin, size);
    }
    size_before_ = begin + size - at_;
    at_ = begin + size;
    ++taken_;
    return Taken::kEntry;
  }

 private:
  static constexpr size_t kHeadBytes = 10;
  static constexpr uint8_t kBigSize = 254;

  bool ReadHead() {
    if (bytes_.size() < kHeadBytes + 1) return false;
    last_ = bytes_.size() - 1;
    tail_ = UnsignedAt(4, 4);
    count_ = UnsignedAt(8, 2);
    at_ = kHeadBytes;
    return UnsignedAt(0, 4) == bytes_.size() && ByteAt(last_) == kEnd && tail_ <= last_;
  }

  // `begin` is where the encoding is, and then where the bytes are. REQUIRES: *begin < last_.
  bool ReadLength(size_t* begin, size_t* size, bool* is_number) const {
    const uint8_t first = ByteAt(*begin);
    const unsigned kind = first >> 6;
    const size_t head = kind == 2 ? 5 : kind == 1 ? 2 : 1;
    *is_number = kind == 3;
    if (head > last_ - *begin) return false;
    if (kind == 0) {
      *size = first;
    } else if (kind == 1) {
      *size = (first & 0x3fU) << 8 | ByteAt(*begin + 1);
    } else if (kind == 2) {
      *size = __builtin_bswap32(static_cast<uint32_t>(UnsignedAt(*begin + 1, 4)));
    } else if (!ReadNumberBytes(first, size)) {
      return false;
    }
    *begin += head;
    return true;
  }

  // Zero: the number lies in the byte itself.
  static bool ReadNumberBytes(uint8_t first, size_t* size) {
    switch (first) {
      case 0xc0:
        *size = 2;
        return true;
      case 0xd0:
        *size = 4;
        return true;
      case 0xe0:
        *size = 8;
        return true;
      case 0xf0:
        *size = 3;
        return true;
      case 0xfe:
        *size = 1;
        return true;
      default:
        *size = 0;
        return first >= 0xf1 && first <= 0xfd;
    }
  }

  size_t last_ = 0;
  uint64_t tail_ = 0;
  uint64_t count_ = 0;
  uint64_t size_before_ = 0;
};

// A count of one byte, then fields and values, each behind its length; between the length of a
// value and the value, a byte that counts free ones behind it.
class ZipmapReader final : public EntryReader {
 public:
  explicit ZipmapReader(std::string_view bytes) : EntryReader(bytes) {}

  Taken Next(std::string_view* entry) override {
    if (at_ == 0 && !ReadHead()) return Taken::kDamaged;
    const bool is_value = taken_ % 2 == 1;
    if (!is_value && ByteAt(at_) == kEnd) {
      const bool is_sound =
          at_ == last_ && taken_ > 0 && (ByteAt(0) == kBigLength || ByteAt(0) == taken_ / 2);
      return is_sound ? Taken::kEnd : Taken::kDamaged;
    }
    uint64_t length = 0;
    if (!TakeLength(&length)) return Taken::kDamaged;
    const uint64_t free = is_value && at_ < last_ ? ByteAt(at_) : 0;
    at_ += is_value ? 1 : 0;
    if (at_ > last_ || length > last_ - at_ || free > last_ - at_ - length) return Taken::kDamaged;
    *entry = bytes_.substr(at_, length);
    at_ += length + free;
    ++taken_;
    return Taken::kEntry;
  }

 private:
  static constexpr uint8_t kBigLength = 254;

  bool ReadHead() {
    if (bytes_.size() < 2) return false;
    last_ = bytes_.size() - 1;
    at_ = 1;
    return ByteAt(last_) == kEnd;
  }

  // REQUIRES: at_ <= last_.
  bool TakeLength(uint64_t* length) {
    *length = ByteAt(at_);
    if (*length < kBigLength) {
      ++at_;
      return true;
    }
    if (*length != kBigLength || last_ - at_ < 5) return false;
    *length = UnsignedAt(at_ + 1, 4);
    at_ += 5;
    // Redis reads a short length in the long form as if it were in the short one.
    return *length >= kBigLength;
  }

  size_t last_ = 0;
};

// How many bytes a number has, how many numbers there are, and the numbers, in ascending order.
class IntsetReader final : public EntryReader {
 public:
  explicit IntsetReader(std::string_view bytes) : EntryReader(bytes) {}

  Taken Next(std::string_view* entry) override {
    if (at_ == 0 && !ReadHead()) return Taken::kDamaged;
    if (at_ == bytes_.size()) return Taken::kEnd;
    const int64_t number = SignedAt(at_, number_bytes_);
    if (taken_ > 0 && number <= before_) return Taken::kDamaged;
    before_ = number;
    *entry = AsText(number);
    at_ += number_bytes_;
    ++taken_;
    return Taken::kEntry;
  }

 private:
  static constexpr size_t kHeadBytes = 8;

  bool ReadHead() {
    if (bytes_.size() < kHeadBytes) return false;
    number_bytes_ = UnsignedAt(0, 4);
    const uint64_t count = UnsignedAt(4, 4);
    at_ = kHeadBytes;
    return (number_bytes_ == 2 || number_bytes_ == 4 || number_bytes_ == 8) && count > 0 &&
           kHeadBytes + count * number_bytes_ == bytes_.size();
  }

  size_t number_bytes_ = 0;
  int64_t before_ = 0;
};

}  // namespace

uint64_t EntryReader::UnsignedAt(size_t at, size_t bytes) const {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= static_cast<uint64_t>(ByteAt(at + i)) << (8 * i);
  return number;
}

int64_t EntryReader::SignedAt(size_t at, size_t bytes) const {
  const size_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(UnsignedAt(at, bytes) << unused) >> unused;
}

std::unique_ptr<EntryReader> ReadListpack(std::string_view bytes) {
  return std::make_unique<ListpackReader>(bytes);
}
std::unique_ptr<EntryReader> ReadZiplist(std::string_view bytes) {
  return std::make_unique<ZiplistReader>(bytes);
}
std::unique_ptr<EntryReader> ReadZipmap(std::string_view bytes) {
  return std::make_unique<ZipmapReader>(bytes);
}
std::unique_ptr<EntryReader> ReadIntset(std::string_view bytes) {
  return std::make_unique<IntsetReader>(bytes);
}

}  // namespace onetrip
