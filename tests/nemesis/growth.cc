#include "tests/nemesis/growth.h"

#include <algorithm>

namespace onetrip {

std::string Growth::Key(const Batch& batch, size_t index) {
  return "grow:" + std::to_string(batch.number) + ":" + std::to_string(index);
}

std::string Growth::Value(const Batch& batch, size_t index) {
  return "written once, " + std::to_string(batch.number) + "." + std::to_string(index);
}

Growth::BatchPtr Growth::Begin(size_t writer) {
  const std::lock_guard lock(mutex_);
  auto batch = std::make_shared<Batch>();
  batch->number = next_++;
  batch->writer = writer;
  batch->endings.fill(Ending::kUnknown);
  return batch;
}

void Growth::Written(const BatchPtr& batch) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kBatchKeys; ++i) {
    const Ending ending = batch->endings[i];
    if (ending == Ending::kAnswered) ++counts_.acknowledged;
    if (ending == Ending::kUnknown) ++counts_.unknown;
    if (ending == Ending::kNotApplied) ++counts_.refused;
    if (ending == Ending::kFault && failures_.size() < kFailuresMax) {
      failures_.push_back("SET " + Key(*batch, i) + " ended in a reply that no fault excuses");
    }
  }
  live_.push_back(batch);
}

Growth::BatchPtr Growth::TakeOldest(size_t writer, size_t keep) {
  const std::lock_guard lock(mutex_);
  const auto is_own = [writer](const BatchPtr& batch) { return batch->writer == writer; };
  const auto count = static_cast<size_t>(std::count_if(live_.begin(), live_.end(), is_own));
  if (count <= keep) return nullptr;
  const auto oldest = std::find_if(live_.begin(), live_.end(), is_own);
  if ((*oldest)->readers != 0) return nullptr;
  BatchPtr batch = *oldest;
  live_.erase(oldest);
  return batch;
}

void Growth::Deleted(uint64_t keys) {
  const std::lock_guard lock(mutex_);
  counts_.deleted += keys;
}

Growth::BatchPtr Growth::BeginRead(Rng& rng) {
  const std::lock_guard lock(mutex_);
  if (live_.empty()) return nullptr;
  BatchPtr batch = live_[rng.Below(live_.size())];
  ++batch->readers;
  return batch;
}

void Growth::EndRead(const BatchPtr& batch) {
  const std::lock_guard lock(mutex_);
  --batch->readers;
}

void Growth::Read(std::string_view agent, const Batch& batch, size_t index,
                  std::string_view reply) {
  const std::string key = Key(batch, index);
  const Ending ending = ClassifyReply({"GET", key}, reply);
  if (ending != Ending::kAnswered && ending != Ending::kFault) return;
  const bool is_there = reply == RespBulk(Value(batch, index));
  const std::lock_guard lock(mutex_);
  ++counts_.read_back;
  const Ending written = batch.endings[index];
  const bool right =
      is_there ? written != Ending::kNotApplied : written != Ending::kAnswered && reply == kRespNil;
  if (right || failures_.size() >= kFailuresMax) return;
  const std::string what = written == Ending::kAnswered     ? "the acknowledged SET "
                           : written == Ending::kNotApplied ? "the refused SET "
                                                            : "the SET of unknown outcome ";
  failures_.push_back(what + key + (is_there ? " took effect" : " is lost") + ": GET by " +
                      std::string(agent) + " answers " + Quote(reply, 64));
}

std::vector<Growth::BatchPtr> Growth::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

Growth::Counts Growth::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<std::string> Growth::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace onetrip
