// Fuzz target: what RESTORE is given is a stream, or refused; one that is taken is sound, and is
// dumped and loaded as it is.
//
// The first byte of an input chooses how much is loaded at a time; the rest is the payload without
// its footer, which is not looked at here.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "client_core/base/check.h"
#include "redis_compat/values/rdb_stream.h"

namespace onetrip {
namespace {

constexpr uint64_t kStreamBytesMax = uint64_t{1} << 20;
using State = StreamLoader::State;

State LoadStream(std::string_view payload, size_t piece, std::string* value) {
  StreamLoader loader(payload, kStreamBytesMax);
  State state = State::kMore;
  while (state == State::kMore) state = loader.Advance(piece);
  *value = loader.TakeValue();
  return state;
}

void CheckStream(StreamValue& stream) {
  StreamEntries entries(stream, {});
  StreamEntry entry;
  uint64_t count = 0;
  for (; entries.Next(&entry); ++count) CHECK(entry.id <= stream.header().last_id);
  CHECK(count == stream.header().length);
  for (const StreamGroup& group : stream.Groups()) {
    CHECK(stream.Consumers(group.number).size() == group.consumers);
    StreamPending pending;
    StreamPendings pendings(stream, group.number, {});
    uint64_t all = 0;
    while (pendings.Next(&pending)) ++all;
    CHECK(all == group.pending);
  }
  CHECK(!stream.is_damaged());
}

std::string DumpStream(StreamValue& stream, size_t piece) {
  StreamDumper dumper(stream);
  std::string made(dumper.BytesMax(), '\0');
  dumper.Begin(made);
  while (dumper.Advance(piece)) {
  }
  CHECK(!dumper.is_damaged() && dumper.made() + kDumpFooterBytes <= made.size());
  made.resize(dumper.made());
  return made + DumpFooter(Crc64(made));
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using onetrip::State;
  if (size < 1) return 0;
  const size_t piece = size_t{1} + data[0];
  std::string payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  payload += onetrip::DumpFooter(0);
  if (!onetrip::IsStreamDump(payload)) return 0;
  std::string value;
  if (onetrip::LoadStream(payload, piece, &value) != State::kDone) return 0;
  CHECK(value.size() <= onetrip::kStreamBytesMax);
  onetrip::StreamValue stream;
  CHECK(stream.Load(value));
  onetrip::CheckStream(stream);
  std::string again;
  CHECK(onetrip::LoadStream(onetrip::DumpStream(stream, piece), piece, &again) == State::kDone);
  CHECK(again == value);
  return 0;
}
