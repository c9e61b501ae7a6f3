#include "client_core/store/staged_store.h"

#include <algorithm>
#include <span>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/record.h"

namespace onetrip {
namespace {

constexpr Status kNoHostMemory(StatusCode::kOutOfMemory, "the host has no memory for the value");

// Writes `outcome` over a key that is as it was; leaves any other alone.
class ReplaceIfUnchanged final : public Mutation {
 public:
  ReplaceIfUnchanged(const KeyVersion& expected, const Change& outcome)
      : expected_(expected), outcome_(outcome) {}

  Change Apply(const RecordView* current) override {
    unchanged_ = VersionIn(current) == expected_ || Planted(Bug::kStagedStoreBlind);
    return unchanged_ ? outcome_ : Change::Keep();
  }

  [[nodiscard]] ValueRange wanted() const override { return kNoValue; }
  // The outcome of the last Apply().
  [[nodiscard]] bool unchanged() const { return unchanged_; }

 private:
  const KeyVersion expected_;
  const Change outcome_;
  bool unchanged_ = false;
};

}  // namespace

Task<Status> StagedKv::Load() {
  values_.clear();
  seen_ = ReadResult();
  ++loads_;
  Status status = co_await store_.Get(key_, &seen_);
  // A key too long to be stored is not there.
  if (status.code() == StatusCode::kTooLarge) status = Status::Ok();
  exists_ = status.ok() && seen_.found();
  changed_ = false;
  loaded_ = VersionIn(exists_ ? &seen_.record() : nullptr);
  if (!exists_) co_return status;
  current_ = seen_.record();
  shape_ = seen_.shape();
  if (seen_.holder() != nullptr) {
    values_.push_back(seen_.holder());
    seen_ = ReadResult();
    current_.holder = Holder();
  }
  co_return status;
}

Task<Status> StagedKv::Store(bool* stored) {
  *stored = !changed_;
  if (*stored) co_return Status::Ok();
  Change outcome = Change::Delete();
  const RecordView* const record = Current();
  if (record != nullptr) {
    outcome = Change::Write(
        {.head = record->value, .deadline_ms = record->deadline_ms, .type = record->type});
  }
  ReplaceIfUnchanged replace(loaded_, outcome);
  const Status status = co_await store_.ReadModifyWrite(key_, replace);
  *stored = status.ok() && replace.unchanged();
  co_return status;
}

void StagedKv::ForgetReplaced() {
  while (values_.size() > 1) values_.pop_front();
}

const RecordView* StagedKv::Current() {
  const bool expired = exists_ && current_.deadline_ms != 0 && NowMs() >= current_.deadline_ms;
  if (expired) {
    exists_ = false;
    changed_ = true;
  }
  return exists_ ? &current_ : nullptr;
}

std::shared_ptr<LargeValue>* StagedKv::Holder() {
  std::shared_ptr<LargeValue>& last = values_.back();
  return last->memory.bytes() > kTurnBytes ? &last : nullptr;
}

Task<std::shared_ptr<LargeValue>> StagedKv::Copy(NewRecord record) {
  auto copy = std::make_shared<LargeValue>();
  copy->memory = LargeMemory::TryMake(record.bytes());
  if (copy->memory.start() == nullptr) co_return nullptr;
  if (record.bytes() > kRecordValueBytesMax) {
    copy->share = MemoryBudget::Share::TakeNow(made_, record.bytes());
  }
  const std::span<char> to(reinterpret_cast<char*>(copy->memory.start()), record.bytes());
  // An operation that comes in between may change the key.
  const bool in_haste = loads_ > kPatientLoads && to.size() <= kRecordValueBytesMax;
  const size_t piece = in_haste ? kRecordValueBytesMax : kTurnBytes;
  for (size_t from = 0; from < to.size(); from += piece) {
    if (from > 0) co_await Yield();
    record.CopyTo(from, to.subspan(from, std::min(piece, to.size() - from)));
  }
  co_return copy;
}

Task<Status> StagedKv::Keep(NewRecord record) {
  const uint64_t bytes = record.bytes();
  std::shared_ptr<LargeValue> copy = co_await Copy(record);
  if (copy == nullptr) co_return kNoHostMemory;
  values_.push_back(std::move(copy));
  current_ = {.value = {reinterpret_cast<const char*>(values_.back()->memory.start()), bytes},
              .value_bytes = bytes,
              .deadline_ms = record.deadline_ms,
              .type = record.type,
              .holder = Holder()};
  exists_ = true;
  changed_ = true;
  co_return Status::Ok();
}

Task<Status> StagedKv::Get(Key key, ReadResult* result) {
  if (!IsStaged(key)) co_return co_await store_.Get(key, result);
  const RecordView* const current = Current();
  *result = ReadResult();
  result->found_ = current != nullptr;
  if (current != nullptr) {
    result->record_ = *current;
    if (!changed_) result->shape_ = shape_;
    if (current->holder != nullptr) result->large_ = *current->holder;
  }
  co_return Status::Ok();
}

Task<Status> StagedKv::GetPart(Key key, ValueRange range, ReadResult* result) {
  if (!IsStaged(key)) co_return co_await store_.GetPart(key, range, result);
  const Status status = co_await Get(key, result);
  const ValuePart part = PartOf(result->record_.value_bytes, range);
  result->record_.value = result->record_.value.substr(part.offset, part.bytes);
  if (result->large_ == nullptr || part.bytes == result->record_.value_bytes) co_return status;
  // The holder of a part must not keep all of the value with it: a reply counts as its own bytes.
  const std::shared_ptr<LargeValue> whole = std::exchange(result->large_, nullptr);
  result->record_.holder = nullptr;
  if (part.bytes <= kTurnBytes) co_return status;
  const NewRecord kept{.head = result->record_.value};
  result->large_ = co_await Copy(kept);
  if (result->large_ == nullptr) co_return kNoHostMemory;
  const std::byte* const own = result->large_->memory.start();
  result->record_.value = {reinterpret_cast<const char*>(own), part.bytes};
  co_return status;
}

Task<Status> StagedKv::Set(Key key, NewRecord record) {
  if (!IsStaged(key)) co_return co_await store_.Set(key, record);
  const Status status = CheckSizes(key, record);
  if (!status.ok()) co_return status;
  co_return co_await Keep(record);
}

Task<Status> StagedKv::SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                                   size_t index) {
  if (!IsStaged(key)) co_return co_await store_.SetPrepared(key, record, prepared, index);
  co_return co_await Set(key, record);
}

Task<Status> StagedKv::Delete(Key key, bool* existed) {
  if (!IsStaged(key)) co_return co_await store_.Delete(key, existed);
  *existed = Current() != nullptr;
  changed_ |= *existed;
  exists_ = false;
  co_return Status::Ok();
}

Task<Status> StagedKv::ReadModifyWrite(Key key, Mutation& mutation) {
  if (!IsStaged(key)) co_return co_await store_.ReadModifyWrite(key, mutation);
  Status status = CheckSizes(key, {});
  if (!status.ok()) co_return status;
  const RecordView* const current = Current();
  const Change change = mutation.Apply(current);
  switch (change.kind) {
    case Change::Kind::kKeep:
    case Change::Kind::kKeepAsRecord:
      break;
    case Change::Kind::kDelete:
      changed_ |= current != nullptr;
      exists_ = false;
      break;
    case Change::Kind::kWrite:
      status = CheckSizes(key, change.record);
      if (status.ok()) status = co_await Keep(change.record);
      if (change.version != nullptr) *change.version = current_.version;
      break;
  }
  co_return status;
}

}  // namespace onetrip
