#include "client_core/kv/staged_kv.h"

#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"

namespace onetrip {
namespace {

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
  // Of the last Apply().
  [[nodiscard]] bool unchanged() const { return unchanged_; }

 private:
  const KeyVersion expected_;
  const Change outcome_;
  bool unchanged_ = false;
};

}  // namespace

Task<Status> StagedKv::Load() {
  ReadResult result;
  Status status = co_await store_.Get(key_, &result);
  // A key too long to be stored is not there.
  if (status.code() == StatusCode::kTooLarge) status = Status::Ok();
  values_.clear();
  changed_ = false;
  exists_ = status.ok() && result.found();
  loaded_ = VersionIn(exists_ ? &result.record() : nullptr);
  if (exists_) {
    current_ = result.record();
    current_.value = values_.emplace_back(current_.value);
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

void StagedKv::Keep(const NewRecord& record) {
  std::string value(record.bytes(), '\0');
  record.CopyTo(0, value);
  current_ = {.value = values_.emplace_back(std::move(value)),
              .value_bytes = record.bytes(),
              .deadline_ms = record.deadline_ms,
              .type = record.type};
  exists_ = true;
  changed_ = true;
}

Task<Status> StagedKv::Get(Key key, ReadResult* result) {
  if (!IsStaged(key)) co_return co_await store_.Get(key, result);
  const RecordView* const current = Current();
  *result = ReadResult();
  result->found_ = current != nullptr;
  if (current != nullptr) result->record_ = *current;
  co_return Status::Ok();
}

Task<Status> StagedKv::GetPart(Key key, ValueRange range, ReadResult* result) {
  if (!IsStaged(key)) co_return co_await store_.GetPart(key, range, result);
  const Status status = co_await Get(key, result);
  const ValuePart part = PartOf(result->record_.value_bytes, range);
  result->record_.value = result->record_.value.substr(part.offset, part.bytes);
  co_return status;
}

Task<Status> StagedKv::Set(Key key, NewRecord record) {
  if (!IsStaged(key)) co_return co_await store_.Set(key, record);
  const Status status = KvImpl::CheckSizes(key, record);
  if (status.ok()) Keep(record);
  co_return status;
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
  Status status = KvImpl::CheckSizes(key, {});
  if (!status.ok()) co_return status;
  const RecordView* const current = Current();
  const Change change = mutation.Apply(current);
  switch (change.kind) {
    case Change::Kind::kKeep:
      break;
    case Change::Kind::kDelete:
      changed_ |= current != nullptr;
      exists_ = false;
      break;
    case Change::Kind::kWrite:
      status = KvImpl::CheckSizes(key, change.record);
      if (status.ok()) Keep(change.record);
      if (change.version != nullptr) *change.version = current_.version;
      break;
  }
  co_return status;
}

}  // namespace onetrip
