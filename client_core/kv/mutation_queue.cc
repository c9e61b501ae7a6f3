#include "client_core/kv/mutation_queue.h"

#include <algorithm>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

constexpr size_t kBatchMax = 1024;
// About the most pages of a tree that a batch has written anew, and bytes that come to it or go:
// its pages are written under a pin.
constexpr size_t kBatchPagesMax = 64;
constexpr uint64_t kBatchTreeBytesMax = 65536;
// Mutations that miss pages of a tree, in a row, for which others have asked already: those behind
// them do not ask.
constexpr size_t kAskedInVainMax = 8;
// A value that is longer is copied for no other mutation's sake.
constexpr uint64_t kSharedValueBytesMax = 65536;
// Mutations of long values take their time: no more join once those that did wrote so much.
constexpr uint64_t kBatchBytesMax = 4 << 20;

// The mutations may have been too many for one record; each by itself may not be.
bool IsOfTheBatch(StatusCode code) {
  return code == StatusCode::kTooLarge || code == StatusCode::kOutOfMemory;
}

}  // namespace

MutationQueue::Place::Place(MutationQueue& queue, const Key& key, Mutation& mutation)
    : queue_(queue),
      line_(&queue.LineOf(key)),
      client_(key.in_order == nullptr ? nullptr : key.in_order->client),
      mutation_(mutation),
      turn_(queue.context_.executor) {
  if (key.in_order != nullptr) key.in_order->has_place = true;
  for (Away& away : line_->away) {
    if (client_ == nullptr || away.leader->client_ != client_) continue;
    away.waiting.push_back(this);
    return;
  }
  line_->places.push_back(this);
  if (line_->places.size() == 1) turn_.Set();
}

MutationQueue::Line& MutationQueue::LineOf(const Key& key) {
  const auto found = by_key_.find(NameView{key.database, key.bytes});
  if (found != by_key_.end()) return found->second;
  const auto made = by_key_.emplace(Name{key.database, key.bytes}, Line{}).first;
  made->second.name = &made->first;
  return made->second;
}

std::vector<MutationQueue::Away>::iterator MutationQueue::FindAway(Line& line,
                                                                   const Place& leader) {
  return std::find_if(line.away.begin(), line.away.end(),
                      [&leader](const Away& one) { return one.leader == &leader; });
}

void MutationQueue::Leave(Place& place) {
  Line& line = *std::exchange(place.line_, nullptr);
  const bool was_first = !line.places.empty() && line.places.front() == &place;
  std::erase(line.places, &place);
  if (was_first && !line.places.empty()) line.places.front()->turn_.Set();
  for (Away& away : line.away) std::erase(away.waiting, &place);
  const auto away = FindAway(line, place);
  if (away != line.away.end()) {
    const std::deque<Place*> waiting = std::move(away->waiting);
    line.away.erase(away);
    ComeBack(line, waiting);
  }
  if (line.places.empty() && line.away.empty()) by_key_.erase(by_key_.find(*line.name));
}

void MutationQueue::ComeBack(Line& line, const std::deque<Place*>& waiting) {
  // The first one may be writing, those behind it with it.
  const size_t at = std::min<size_t>(line.places.size(), 1);
  line.places.insert(line.places.begin() + static_cast<std::ptrdiff_t>(at), waiting.begin(),
                     waiting.end());
  if (at == 0 && !line.places.empty()) line.places.front()->turn_.Set();
}

MutationQueue::Batch MutationQueue::Lead(Place& place) {
  Batch batch(context_);
  const std::deque<Place*>& places = place.line_->places;
  CHECK(places.front() == &place);
  for (Place* const next : places) {
    const bool joins =
        next == &place || (!place.alone_ && !next->alone_ &&
                           place.mutation_.takes_trees() == next->mutation_.takes_trees());
    if (!joins || batch.all_.size() == kBatchMax) break;
    batch.all_.push_back(next);
  }
  return batch;
}

void MutationQueue::Disband(Batch& batch) {
  batch.all_.resize(1);
  Place& leader = *batch.all_.front();
  Line& line = *leader.line_;
  // It may have to wait more than once.
  if (FindAway(line, leader) != line.away.end()) return;
  Away away{&leader, {}};
  std::erase_if(line.places, [&leader, &away](Place* place) {
    const bool waits = place->client_ != nullptr && place->client_ == leader.client_;
    if (waits && place != &leader) away.waiting.push_back(place);
    return waits || place == &leader;
  });
  line.away.push_back(std::move(away));
  if (!line.places.empty()) line.places.front()->turn_.Set();
}

bool MutationQueue::Finish(Place& leader, const Batch& batch, Status status) {
  if (IsOfTheBatch(status.code()) && batch.all_.size() > 1) {
    for (Place* const place : batch.all_) place->alone_ = true;
    return false;
  }
  // A batch that has written nothing has failed for all that took part, applied or not.
  const bool may_be_written = status.ok() || status.code() == StatusCode::kUnknownOutcome;
  const size_t ended = may_be_written ? batch.applied_ : batch.all_.size();
  if (ended <= 1) return true;
  for (size_t i = 1; i < ended; ++i) {
    Place* const place = batch.all_[i];
    place->outcome_ = status;
    place->line_ = nullptr;
    metrics_.rmw_combined.Add();
    place->turn_.Set();
  }
  std::erase_if(leader.line_->places, [](Place* place) { return place->line_ == nullptr; });
  return true;
}

Change MutationQueue::Batch::Apply(const RecordView* current) {
  const RecordView* view = current;
  Change all = Change::Keep();
  // The others may want another part of what lies in extents.
  const bool is_whole =
      current == nullptr || current->tree != nullptr ||
      (current->holder == nullptr && current->value.size() == current->value_bytes);
  applied_ = 0;
  bytes_ = 0;
  if (current != nullptr && current->tree != nullptr) {
    tree_bytes_ = current->tree->leaf_bytes(0);
  }
  size_t asked = 0;
  size_t asked_in_vain = 0;  // in a row
  for (bool more = true; more && applied_ < all_.size();) {
    const Change change =
        all_[applied_]->mutation_.Apply(Planted(Bug::kQueuedSeeTheOld) ? current : view);
    ++applied_;
    // They ask for their pages together; none has taken effect.
    if (current != nullptr && current->tree != nullptr && !current->tree->missing().empty()) {
      const size_t missing = current->tree->missing().size();
      if (asked == 0 && has_asked_ && applied_ > 1) {
        // Each one's page comes behind the one before it: those that need no other go now.
        all_.resize(--applied_);
        break;
      }
      if (asked == 0) current->tree->NeedInwards(all_.size() - applied_);
      asked_in_vain = missing > asked ? 0 : asked_in_vain + 1;
      asked = missing;
      if (missing > kBatchPagesMax) all_.resize(applied_);
      more = applied_ < all_.size() && asked_in_vain < kAskedInVainMax;
      continue;
    }
    const bool is_kept =
        change.kind == Change::Kind::kKeep ||
        (change.kind == Change::Kind::kKeepAsRecord && all.kind != Change::Kind::kKeep);
    if (!is_kept) all = change;
    more = is_whole && applied_ < all_.size() && GoOnBehind(change, &view);
  }
  has_asked_ = has_asked_ || asked > 0;
  return all;
}

std::optional<uint64_t> MutationQueue::Batch::growth() const {
  uint64_t all = 0;
  for (const Place* place : all_) {
    const std::optional<uint64_t> one = place->mutation_.growth();
    if (!one) return std::nullopt;
    all += *one;
  }
  return all;
}

bool MutationQueue::Batch::IsExpired(const NewRecord& record) const {
  return record.deadline_ms != 0 && context_.clock.NowMs() >= record.deadline_ms;
}

bool MutationQueue::Batch::IsMuch(const Tree& tree) const {
  const uint64_t bytes = tree.leaf_bytes(0);
  const uint64_t change = bytes > tree_bytes_ ? bytes - tree_bytes_ : tree_bytes_ - bytes;
  return tree.dropped().size() > kBatchPagesMax || change > kBatchTreeBytesMax;
}

bool MutationQueue::Batch::GoOnBehind(const Change& change, const RecordView** view) {
  switch (change.kind) {
    case Change::Kind::kKeep:
      return true;
    case Change::Kind::kKeepAsRecord:
      return false;
    case Change::Kind::kDelete:
      *view = nullptr;
      return true;
    case Change::Kind::kWrite:
      break;
  }
  // Whoever asks for the version of what it has written means that alone.
  const NewRecord& record = change.record;
  if (record.tree != nullptr && takes_trees()) {
    if (change.version != nullptr || IsMuch(*record.tree)) return false;
    written_ = {{},
                record.tree->header().size() + record.tree->leaf_bytes(0),
                record.deadline_ms,
                0,
                record.type,
                nullptr,
                record.tree};
    *view = IsExpired(record) ? nullptr : &written_;
    return true;
  }
  bytes_ += record.bytes();
  if (change.version != nullptr || bytes_ > kBatchBytesMax) return false;
  std::string_view value = record.head;
  if (value.size() != record.bytes()) {
    if (record.bytes() > kSharedValueBytesMax) return false;
    // The record may point into what the mutation saw, which was written before.
    newest_ = 1 - newest_;
    std::string& copy = values_[newest_];
    copy.resize(record.bytes());
    record.CopyTo(0, std::span<char>(copy.data(), copy.size()));
    value = copy;
  }
  written_ = {value, value.size(), record.deadline_ms, 0, record.type, nullptr};
  *view = IsExpired(record) ? nullptr : &written_;
  return true;
}

}  // namespace onetrip
