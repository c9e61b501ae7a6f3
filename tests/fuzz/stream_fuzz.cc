// Fuzz target: whatever the bytes of a packed stream are, reading it stays within them, and a
// change of it is refused or makes a stream that can be read; and so does a tree of them.
//
// The first byte of an input says how many changes follow, each of them what to do and an id; the
// rest is the stream.
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/stream_edit.h"
#include "tests/fuzz/fuzz_input.h"

namespace onetrip {
namespace {

struct FuzzStreamChange {
  enum class Kind : uint8_t {
    kAdd,
    kDelete,
    kTrimLength,
    kTrimId,
    kRead,
    kAcknowledge,
    kGroups,
    kKinds
  };
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
bool GoThroughEntries(StreamValue& stream, bool reverse) {
  StreamEntries entries(stream, {.reverse = reverse});
  StreamEntry entry;
  EntryId before;
  uint64_t count = 0;
  for (; entries.Next(&entry); before = entry.id, ++count) {
    if (count > 0) CHECK(reverse ? entry.id < before : before < entry.id);
    CheckFields(entry);
  }
  if (!stream.is_damaged()) CHECK(count == stream.header().length);
  return !stream.is_damaged();
}

// Whatever is pending, by id and by consumer; false: it is damaged.
bool GoThroughGroups(StreamValue& stream) {
  for (const StreamGroup& group : stream.Groups()) {
    StreamPending pending;
    StreamPendings all(stream, group.number, {});
    while (all.Next(&pending)) {
    }
    for (const StreamConsumer& consumer : stream.Consumers(group.number)) {
      StreamPendings given(stream, group.number, {});
      given.OfConsumer(consumer.number);
      while (given.Next(&pending)) {
      }
    }
  }
  return !stream.is_damaged();
}

bool IsSound(std::string_view value) {
  StreamValue forwards;
  StreamValue backwards;
  StreamValue groups;
  CHECK(forwards.Load(value) && backwards.Load(value) && groups.Load(value));
  const bool is_sound = GoThroughEntries(forwards, /*reverse=*/false);
  // Whatever the direction, it meets the same.
  CHECK(GoThroughEntries(backwards, /*reverse=*/true) == is_sound);
  return GoThroughGroups(groups) && is_sound;
}

void ChangeGroups(StreamEdit* stream, const EntryId& id) {
  for (const StreamGroup& found : stream->Groups()) {
    StreamGroupEdit group(*stream, found);
    StreamPending pending;
    if (group.FindPending(id, &pending)) group.Remove(pending);
    const uint32_t consumer = group.SeeConsumer("consumer", 1);
    group.Put({.id = id, .deliveries = 1, .consumer = consumer});
    group.Finish();
  }
}

// Makes a group, or removes it, or a consumer of it.
void ChangeGroupOf(StreamEdit* stream, uint64_t what) {
  StreamGroup found;
  StreamConsumer consumer;
  if (!stream->FindGroup("group", &found)) {
    stream->AddGroup({.name = "group"});
  } else if (what == 0) {
    stream->RemoveGroup(found);
  } else if (stream->FindConsumer(found.number, "consumer", &consumer)) {
    StreamGroupEdit group(*stream, found);
    group.RemoveConsumer(consumer);
    group.Finish();
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
      stream->Delete({&change.id, 1});
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
    case FuzzStreamChange::Kind::kGroups:
      ChangeGroupOf(stream, change.id.ms % 4);
      break;
    default: {
      StreamEntry entry;
      if (stream->Find(change.id, &entry)) CHECK(entry.id == change.id);
    }
  }
}

void CheckPacked(const std::string& value, const std::deque<FuzzStreamChange>& changes) {
  StreamEdit stream;
  if (!stream.Load(value)) return;
  const bool was_sound = value.empty() || IsSound(value);
  for (const FuzzStreamChange& change : changes) {
    if (!stream.is_damaged()) ApplyChange(change, &stream);
  }
  if (stream.is_damaged()) return;
  const std::string made = stream.Finish();
  StreamValue again;
  CHECK(again.Load(made) || !was_sound);
}

// A tree of the same bytes has the same outcome, one change after the other.
void CheckTree(const std::string& value, const std::deque<FuzzStreamChange>& changes) {
  constexpr TreeLimits kSmall{.leaf_bytes = 100, .packed_bytes = 1};
  StreamEdit first;
  if (!first.Load(value) || value.empty() || !IsSound(value)) return;
  std::string packed = value;
  std::optional<Tree> tree = MakeTree(ValueType::kStream, packed, kSmall);
  for (const FuzzStreamChange& change : changes) {
    if (!tree || tree->elements(0) == 0) return;
    StreamEdit on_packed;
    StreamEdit on_tree;
    CHECK(on_packed.Load(packed) && on_tree.Load(*tree));
    ApplyChange(change, &on_packed);
    ApplyChange(change, &on_tree);
    if (on_packed.is_damaged() || on_tree.is_damaged()) return;
    if (!on_tree.FinishTree()) return;
    packed = on_packed.Finish();
    std::string joined;
    CHECK(!on_tree.is_damaged() && JoinLeaves(*tree, &joined));
    CHECK(joined == packed);
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
  onetrip::CheckPacked(value, changes);
  onetrip::CheckTree(value, changes);
  return 0;
}
