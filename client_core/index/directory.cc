#include "client_core/index/directory.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr Status kMoved(StatusCode::kUnavailable, "the index has moved meanwhile");
constexpr Status kUnsound(StatusCode::kCorrupt, "a directory entry points outside the pool");

}  // namespace

void Directory::Use(uint8_t number) {
  if (std::exchange(number_, number) == number) return;
  ++uses_;
  if (Planted(Bug::kDirectoryRemembered)) return;
  std::fill(words_.begin(), words_.end(), DirectoryWord());
}

// An entry is as deep as its number has bits, or deeper, and its subtable lies within one region.
bool Directory::IsSound(uint32_t entry, DirectoryWord word) const {
  return context_.view().Contains(word.subtable()) && word.depth() <= kMaxDepth &&
         word.depth() >= static_cast<uint32_t>(std::bit_width(entry)) &&
         word.subtable().offset() + kSubtableBytes <= kRegionBytes;
}

Subtable Directory::Lookup(KeyHash hash) const {
  uint32_t entry = 0;
  while (true) {
    const uint32_t depth = words_[entry].depth();
    if (hash.suffix(depth) == entry) break;
    const uint32_t child = ChildEntry(entry, depth, hash);
    if (!Knows(child)) break;
    entry = child;
  }
  return At(entry);
}

void Directory::NoteDepth(uint32_t entry, uint32_t depth) {
  const DirectoryWord word = words_[entry];
  if (word.depth() < depth) {
    words_[entry] = DirectoryWord::Open(word.subtable(), depth);
  }
}

void Directory::Keep(uint32_t entry, DirectoryWord word) {
  const uint32_t known_depth = words_[entry].depth();
  words_[entry] = word;
  NoteDepth(entry, known_depth);
}

Task<Status> Directory::RefreshStretch(Operation& operation, uint32_t first, uint32_t count,
                                       std::vector<uint32_t>* used,
                                       std::vector<uint32_t>* splitting) {
  CHECK(first + count <= kDirectoryEntries);
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* words = reinterpret_cast<const uint64_t*>(
      round_trip->Read(context_.view().Locate(AddrOf(first), 0), count * 8));
  const uint64_t uses = uses_;
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  if (uses_ != uses) co_return kMoved;
  for (uint32_t i = 0; i < count; ++i) {
    const DirectoryWord word(words[i]);
    if (!word.is_used()) continue;
    if (!IsSound(first + i, word)) co_return kUnsound;
    Keep(first + i, word);
    used->push_back(first + i);
    if (word.splitting()) splitting->push_back(first + i);
  }
  co_return Status::Ok();
}

Task<Result<DirectoryWord>> Directory::Refresh(Operation& operation, uint32_t entry) {
  CHECK(entry < kDirectoryEntries);
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const uint64_t* bits = round_trip->ReadWord(context_.view().Locate(AddrOf(entry), 0));
  const uint64_t uses = uses_;
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  if (uses_ != uses) co_return kMoved;
  const DirectoryWord word(*bits);
  if (word.is_used() && !IsSound(entry, word)) co_return kUnsound;
  if (word.is_used()) Keep(entry, word);
  co_return word;
}

}  // namespace onetrip
