#include "client_core/kv/mutation_queue.h"

#include <algorithm>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

constexpr size_t kBatchMax = 64;
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
      key_(key.database, std::string(key.bytes)),
      mutation_(mutation),
      turn_(queue.context_.executor) {
  Places& places = queue_.by_key_[key_];
  places.push_back(this);
  if (places.size() == 1) turn_.Set();
}

void MutationQueue::Leave(Place& place) {
  const auto found = by_key_.find(place.key_);
  if (found == by_key_.end()) return;
  Places& places = found->second;
  const bool was_first = places.front() == &place;
  std::erase(places, &place);
  if (places.empty()) {
    by_key_.erase(found);
  } else if (was_first) {
    places.front()->turn_.Set();
  }
}

MutationQueue::Batch MutationQueue::Lead(Place& place) {
  Batch batch(context_);
  const Places& places = by_key_.at(place.key_);
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
  Leave(*batch.all_.front());
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
  Places& places = by_key_.at(leader.key_);
  for (size_t i = 1; i < ended; ++i) {
    Place* const place = batch.all_[i];
    place->outcome_ = status;
    metrics_.rmw_combined.Add();
    std::erase(places, place);
    place->turn_.Set();
  }
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
  for (bool more = true; more && applied_ < all_.size();) {
    const Change change =
        all_[applied_]->mutation_.Apply(Planted(Bug::kQueuedSeeTheOld) ? current : view);
    ++applied_;
    // All of them ask for their pages; none has taken effect.
    if (current != nullptr && current->tree != nullptr && !current->tree->missing().empty()) {
      more = applied_ < all_.size();
      continue;
    }
    const bool is_kept =
        change.kind == Change::Kind::kKeep ||
        (change.kind == Change::Kind::kKeepAsRecord && all.kind != Change::Kind::kKeep);
    if (!is_kept) all = change;
    more = is_whole && applied_ < all_.size() && GoOnBehind(change, &view);
  }
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
    if (change.version != nullptr) return false;
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
