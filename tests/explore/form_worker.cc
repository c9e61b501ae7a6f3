#include "tests/explore/form_worker.h"

#include <charconv>
#include <optional>
#include <utility>

namespace onetrip {
namespace {

// Blocks of region 0 per seat, from behind the root area on. The maker of the memory gets the rest.
constexpr uint32_t kBlocksPerSeat = 15;
constexpr uint32_t kBlocksOfMaker = kBlocksPerRegion - kRootBlocks - kClientsMax * kBlocksPerSeat;

constexpr int64_t kClusterUs = 1'000'000;
constexpr int64_t kLaterUs = 1'000;
constexpr int kAttemptsMax = 1000;
constexpr std::string_view kWarmKey = "warm key";

DataPathOptions OptionsOf() {
  DataPathOptions options = ExploreDataPathOptions();
  options.register_lanes = FormWorker::kLanes;
  options.epoch_tick_us = kOpTimeoutMs * 1000;  // never
  options.hot_after = 0;  // a client's second write of a record in a row takes no search
  return options;
}

class Increment final : public Mutation {
 public:
  // It always has the same length.
  [[nodiscard]] std::optional<uint64_t> growth() const override { return 0; }
  Change Apply(const RecordView* current) override {
    sum_ = current == nullptr ? 1 : FormWorker::NumberOf(current->value) + 1;
    text_ = FormWorker::TextOf(sum_);
    return Change::Write({.head = text_});
  }
  [[nodiscard]] uint64_t sum() const { return sum_; }

 private:
  std::string text_;
  uint64_t sum_ = 0;
};

class Overwrite final : public Mutation {
 public:
  // Writes in the first `attempts` attempts.
  Overwrite(uint64_t number, int attempts)
      : text_(FormWorker::TextOf(number)), attempts_(attempts) {}
  Change Apply(const RecordView* /*current*/) override {
    return attempts_-- > 0 ? Change::Write({.head = text_}) : Change::Keep();
  }

 private:
  const std::string text_;
  int attempts_;
};

}  // namespace

FormWorker::FormWorker(ExploreExecutor& executor, ExploreFabric& fabric,
                       std::shared_ptr<const View> view, size_t seat, EngineKind engine)
    : master_(std::move(view), kClusterUs + (seat < kClientsMax ? kLaterUs : 0)),
      hold_(executor),
      context_(
          executor, fabric, master_, hold_,
          {WorkerId{static_cast<uint32_t>(seat) + 1}, WorkerIndex{static_cast<uint16_t>(seat)}},
          OptionsOf()),
      engine_(MakeEngine(engine, context_)),
      kv_(context_, *engine_) {
  fabric.OwnBlocks(kRootBlocks + static_cast<uint32_t>(seat) * kBlocksPerSeat,
                   seat < kClientsMax ? kBlocksPerSeat : kBlocksOfMaker);
}

Task<bool> FormWorker::Start() {
  const Status status = co_await kv_.Start();
  co_return status.ok();
}

Task<bool> FormWorker::WarmUp() {
  FormResult result = co_await Set(kWarmKey, 1);
  if (!result.status.ok()) co_return false;
  result = co_await Set(kWarmKey, 2);
  if (!result.status.ok()) co_return false;
  result = co_await Increment(kWarmKey);
  co_return result.status.ok() && result.value == 3;
}

Task<FormResult> FormWorker::Get(std::string_view key) {
  ReadResult read;
  const Status status = co_await kv_.Get({0, key}, &read);
  co_return FormResult{status, status.ok() && read.found() ? NumberOf(read.record().value) : 0};
}

Task<FormResult> FormWorker::Set(std::string_view key, uint64_t number) {
  const std::string text = TextOf(number);
  const Status status = co_await kv_.Set({0, key}, {.head = text});
  co_return FormResult{status, 0};
}

Task<FormResult> FormWorker::Delete(std::string_view key) {
  bool existed = false;
  const Status status = co_await kv_.Delete({0, key}, &existed);
  co_return FormResult{status, existed ? 1U : 0U};
}

Task<FormResult> FormWorker::Increment(std::string_view key) {
  onetrip::Increment increment;
  const Status status = co_await kv_.ReadModifyWrite({0, key}, increment);
  co_return FormResult{status, increment.sum()};
}

Task<FormResult> FormWorker::Write(std::string_view key, uint64_t number) {
  Overwrite overwrite(number, kAttemptsMax);
  const Status status = co_await kv_.ReadModifyWrite({0, key}, overwrite);
  co_return FormResult{status, 0};
}

Task<FormResult> FormWorker::Thaw(std::string_view key) {
  Overwrite overwrite(0, 1);  // the attempt that meets the register
  const Status status = co_await kv_.ReadModifyWrite({0, key}, overwrite);
  co_return FormResult{status, 0};
}

std::string FormWorker::TextOf(uint64_t number) {
  std::string text = std::to_string(number);
  return std::string(kDigits - text.size(), '0') + text;
}

uint64_t FormWorker::NumberOf(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace onetrip
