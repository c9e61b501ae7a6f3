// ReplyWriter: one command's reply, in RESP2 or RESP3, appended to an OutputBuffer.
//
// A handler calls it once per element, headers first; the protocol version decides the bytes, so
// that no handler asks for it (maps, doubles, booleans, null and verbatim text degrade as Redis
// does it). Two words, cheap to make per command. Not thread-safe.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_WRITER_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_WRITER_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {

class ReplyWriter {
 public:
  // `buffer` outlives the writer. REQUIRES: protocol is 2 or 3.
  ReplyWriter(OutputBuffer& buffer, int protocol) : buffer_(&buffer), resp3_(protocol == 3) {}

  [[nodiscard]] int protocol() const { return resp3_ ? 3 : 2; }
  void set_protocol(int protocol) { resp3_ = protocol == 3; }

  // From now on replies go to `buffer`: CLIENT REPLY OFF sends them to a buffer that is never read.
  OutputBuffer* Redirect(OutputBuffer* buffer) {
    OutputBuffer* previous = buffer_;
    buffer_ = buffer;
    return previous;
  }

  // "+OK" in one store.
  void Ok() { Raw("+OK\r\n"); }
  // REQUIRES: no CR or LF in `text`.
  void Simple(std::string_view text);
  // `message` starts with its error word ("ERR ..."), without the dash. CR and LF become spaces,
  // as Redis does it.
  void Error(std::string_view message);
  void Integer(int64_t value);

  // A string of any bytes. The hot path of GET: one reservation, one copy.
  void Bulk(std::string_view value) {
    char* const start = buffer_->Reserve(value.size() + kHeaderMax + 2);
    char* p = WriteHeader(start, '$', value.size());
    // memcpy takes no null pointer, and an empty view may have one.
    if (!value.empty()) std::memcpy(p, value.data(), value.size());
    p += value.size();
    p[0] = '\r';
    p[1] = '\n';
    buffer_->Commit(static_cast<size_t>(p + 2 - start));
  }
  // The same without a copy of the value, which `owner` keeps until it is sent.
  void BulkShared(std::shared_ptr<const void> owner, std::string_view value) {
    Header('$', value.size());
    buffer_->AppendShared(std::move(owner), value);
    Raw("\r\n");
  }
  // The same in parts: `bytes` of Raw() must follow, and a line end.
  void BulkHeader(size_t bytes) { Header('$', bytes); }
  // An integer as a bulk string.
  void BulkInteger(int64_t value);

  // A missing value: "$-1" in RESP2, "_" in RESP3.
  void Null() { Raw(resp3_ ? std::string_view("_\r\n") : std::string_view("$-1\r\n")); }
  // A missing array: "*-1" in RESP2, "_" in RESP3.
  void NullArray() { Raw(resp3_ ? std::string_view("_\r\n") : std::string_view("*-1\r\n")); }

  // Headers: exactly `count` elements must follow (for maps, `count` keys each with its value).
  void Array(size_t count) { Header('*', count); }
  void Map(size_t count) { resp3_ ? Header('%', count) : Header('*', count * 2); }
  void Set(size_t count) { Header(resp3_ ? '~' : '*', count); }
  void Push(size_t count) { Header(resp3_ ? '>' : '*', count); }

  // RESP2: integer 1 or 0.
  void Bool(bool value);
  // With 17 significant digits. RESP2: a bulk string.
  void Double(double value);
  // RESP2: a bulk string. REQUIRES: `digits` is an optional minus and digits.
  void BigNumber(std::string_view digits);
  // RESP2: a bulk string. REQUIRES: `format` has three letters ("txt", "mkd").
  void Verbatim(std::string_view text, std::string_view format);

  // Bytes that are RESP already.
  void Raw(std::string_view resp) { buffer_->Append(resp); }

  // Where the next reply goes, for a handler that may have to take back what it has written.
  [[nodiscard]] OutputBuffer& buffer() { return *buffer_; }

  // How many error replies were written, and the first word of the last one ("ERR"; valid until
  // the next error; at most 31 bytes).
  [[nodiscard]] uint64_t errors() const { return errors_; }
  [[nodiscard]] std::string_view last_error_word() const {
    return std::string_view(error_word_, error_word_size_);
  }

 private:
  // Type byte, 20 digits and a line end.
  static constexpr size_t kHeaderMax = 24;

  // Almost every header counts to less than a hundred: those digits are written in line.
  static char* WriteHeader(char* p, char type, uint64_t count) {
    *p++ = type;
    if (count >= 100) {
      return WriteHeaderSlow(p, count);
    }
    if (count >= 10) {
      *p++ = static_cast<char>('0' + count / 10);
    }
    p[0] = static_cast<char>('0' + count % 10);
    p[1] = '\r';
    p[2] = '\n';
    return p + 3;
  }
  static char* WriteHeaderSlow(char* p, uint64_t count);
  void Header(char type, uint64_t count);

  OutputBuffer* buffer_;
  uint64_t errors_ = 0;
  bool resp3_;
  uint8_t error_word_size_ = 0;
  char error_word_[31];  // Not initialized: a writer is made per command.
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_WRITER_H_
