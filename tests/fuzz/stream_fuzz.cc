// Fuzz target: whatever the bytes of a packed stream are, reading it stays within them, and a
// change of it is refused or makes a stream that can be read.
//
// The first byte of an input says how many changes follow, each of them what to do and an id; the
// rest is the stream.
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "redis_compat/values/stream_edit.h"
#include "tests/fuzz/fuzz_input.h"

namespace onetrip {
namespace {

struct FuzzStreamChange {
  enum class Kind : uint8_t { kAdd, kDelete, kTrimLength, kTrimId, kRead, kAcknowledge, kKinds };
  Kind kind = Kind::kAdd;
  EntryId id;
  bool whole_nodes = false;
};

FuzzStreamChange TakeStreamChange(FuzzInput* input) {
  constexpr auto kKinds = static_cast<uint8_t>(FuzzStreamChange::Kind::kKinds);
  FuzzStreamChange change;
  const uint8_t what = input->TakeByte();
  change.kind = static_cast<FuzzStreamChange::Kind>(what % kKinds);
  change.whole_nodes = (what & 0x80) != 0;
  change.id = {input->TakeByte(), input->TakeByte()};
  return change;
}

// Every text lies within the stream, or is a number's.
void CheckFields(const StreamEntry& entry) {
  StreamFields fields(entry);
  std::string_view name;
  std::string_view value;
  uint64_t count = 0;
  for (; fields.Next(&name, &value); ++count) {
    CHECK(name.size() <= entry.listpack.size() && value.size() <= entry.listpack.size());
  }
  CHECK(count == entry.fields);
}

// Entries one way; false: it is damaged.
bool GoThroughEntries(const StreamValue& stream, bool reverse) {
  StreamEntries entries(stream, {.reverse = reverse});
  StreamEntry entry;
  EntryId before;
  uint64_t count = 0;
  for (; entries.Next(&entry); before = entry.id, ++count) {
    if (count > 0) CHECK(reverse ? entry.id < before : before < entry.id);
    CheckFields(entry);
  }
  if (!entries.is_damaged()) CHECK(count == stream.header().length);
  return !entries.is_damaged();
}

bool GoThroughStream(const StreamValue& stream) {
  bool is_sound = true;
  for (const StreamValue::Group& packed : stream.groups()) {
    StreamGroup group;
    is_sound = group.Load(packed.body) && is_sound;
  }
  const bool forwards = GoThroughEntries(stream, /*reverse=*/false);
  // Whatever the direction, it meets the same.
  CHECK(GoThroughEntries(stream, /*reverse=*/true) == forwards);
  CHECK(CountRadixTreeNodes(stream.nodes()) > stream.nodes().size());
  return is_sound && forwards;
}

void ChangeGroups(StreamEdit* stream, const EntryId& id) {
  const std::vector<StreamValue::Group> groups = stream->groups();
  for (const StreamValue::Group& packed : groups) {
    StreamGroup group;
    if (!group.Load(packed.body)) continue;
    StreamPending* const pending = group.FindPending(id);
    if (pending != nullptr) pending->consumer = StreamGroup::kNoConsumer;
    group.Sweep();
    const uint32_t consumer = group.SeeConsumer("consumer", 1);
    group.AddPending(id).consumer = consumer;
    stream->PutGroup(packed.name, group);
  }
}

void ApplyChange(const FuzzStreamChange& change, StreamEdit* stream) {
  constexpr std::array<std::string_view, 2> kFields = {"name", "123"};
  StreamTrim trim{.by = StreamTrim::By::kId, .id = change.id, .whole_nodes = change.whole_nodes};
  switch (change.kind) {
    case FuzzStreamChange::Kind::kAdd: {
      EntryId id = stream->header().last_id;
      if (StepForward(&id)) stream->Add(id, kFields, {change.id.ms, 4096});
      break;
    }
    case FuzzStreamChange::Kind::kDelete:
      stream->Delete(change.id);
      break;
    case FuzzStreamChange::Kind::kTrimLength:
      trim.by = StreamTrim::By::kLength;
      trim.length = change.id.ms;
      stream->Trim(trim);
      break;
    case FuzzStreamChange::Kind::kTrimId:
      stream->Trim(trim);
      break;
    case FuzzStreamChange::Kind::kAcknowledge:
      ChangeGroups(stream, change.id);
      break;
    default: {
      StreamEntry entry;
      bool is_damaged = false;
      if (stream->Find(change.id, &entry, &is_damaged)) CHECK(entry.id == change.id);
    }
  }
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::FuzzInput input(data, size);
  std::deque<onetrip::FuzzStreamChange> changes;
  for (int left = input.TakeByte() % 32; left > 0; --left) {
    changes.push_back(onetrip::TakeStreamChange(&input));
  }
  const std::string value = input.TakeRest();
  onetrip::StreamEdit stream;
  if (!stream.Load(value)) return 0;
  const bool was_sound = onetrip::GoThroughStream(stream);
  for (const onetrip::FuzzStreamChange& change : changes) {
    if (!stream.is_damaged()) onetrip::ApplyChange(change, &stream);
  }
  if (stream.is_damaged()) return 0;
  const std::string made = stream.Finish();
  onetrip::StreamValue again;
  CHECK(again.Load(made) || !was_sound);
  return 0;
}
