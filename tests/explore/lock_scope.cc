#include "tests/explore/lock_scope.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "client_core/replication/timestamp_lock.h"
#include "tests/explore/explore_master.h"
#include "tests/explore/guess_scope.h"

namespace onetrip {
namespace {

constexpr RegisterTime kLeftoverTime = 5;
constexpr RegisterTime kFirstTime = 10;
constexpr RegisterTime kLaterTime = 20;

std::string NameOf(const LockOptions& options) {
  std::string name = "lock ";
  for (size_t i = 0; i < options.programs.size(); ++i) {
    name += (i == 0 ? "" : "||") + std::string(options.programs[i]);
  }
  return options.leftovers > 0 ? name + " used " + std::to_string(options.leftovers) : name;
}

// A client that did not get the lock has said so in a note, and is no part of the history.
std::vector<std::vector<ProgramOp>> ProgramsOf(const LockOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const std::string_view program : options.programs) {
    auto& ops = programs.emplace_back();
    for (const char kind : program) ops.push_back({kind, /*reads_only=*/true});
  }
  return programs;
}

class LockClient final : public ExploredClient {
 public:
  LockClient(const LockScope& scope, const ClientEnvironment& environment)
      : scope_(scope),
        client_(environment.client),
        notes_(environment.notes),
        master_(scope.view()),
        hold_(environment.executor),
        context_(environment.executor, environment.fabric, master_, hold_,
                 {WorkerId{static_cast<uint32_t>(client_) + 1},
                  WorkerIndex{static_cast<uint16_t>(client_)}},
                 ExploreDataPathOptions()),
        max_register_(context_, {}),
        lock_(max_register_, {}) {
    handle_.ref = scope.ref();
  }

  Task<OpResult> Run(size_t op) override {
    RegisterOperation operation;
    const MetaWord guess = scope_.Guess(client_, op);
    const Result<bool> locked =
        co_await lock_.TryLock(operation, handle_, guess, scope_.Mode(client_, op));
    // A majority answers.
    if (!locked.ok()) co_return OpResult{OpResult::Kind::kBroken, 0, locked.status().message()};
    if (operation.round_trips > scope_.RoundTripsMax(guess)) {
      co_return OpResult{OpResult::Kind::kBroken, 0, "more round trips than the word may change"};
    }
    if (locked.value()) co_return OpResult{OpResult::Kind::kDone, 1, ""};
    notes_.push_back({LockScope::kNoteNotLocked, scope_.Asked(client_, op).bits(), 0});
    co_return OpResult{OpResult::Kind::kUnknown, 0, ""};
  }

 private:
  const LockScope& scope_;
  const size_t client_;
  std::vector<Note>& notes_;
  ExploreMaster master_;
  Quiesce hold_;
  WorkerContext context_;
  MaxRegister max_register_;
  TimestampLock lock_;
  RegisterHandle handle_;
};

}  // namespace

LockScope::LockScope(LockOptions options)
    : Scope(NameOf(options), 3, ProgramsOf(options), options.faults),
      options_(std::move(options)),
      view_(MakeExploreView(3)),
      ref_(ExploredRegister::Ref(1, 0)) {}

MetaWord LockScope::Guess(size_t client, size_t op) const {
  const bool is_later = std::islower(options_.programs[client][op]) != 0;
  return {is_later ? kLaterTime : kFirstTime, ExploredRegister::Buffer(0)};
}

LockMode LockScope::Mode(size_t client, size_t op) const {
  return std::toupper(options_.programs[client][op]) == 'R' ? LockMode::kRead : LockMode::kWrite;
}

LockWord LockScope::Asked(size_t client, size_t op) const {
  return {{ref_.birth.value + Guess(client, op).time()}, Mode(client, op)};
}

// Every round trip but the last has found a word of an earlier time, another each time.
uint32_t LockScope::RoundTripsMax(MetaWord guess) const {
  uint32_t earlier = options_.leftovers > 0 ? 1 : 0;
  const auto is_first = [](std::string_view program) {
    return std::any_of(program.begin(), program.end(), [](char c) { return std::isupper(c); });
  };
  const bool is_later = guess.time() == kLaterTime;
  earlier += is_later && std::any_of(options_.programs.begin(), options_.programs.end(), is_first);
  return earlier + 1;
}

std::unique_ptr<ExploredClient> LockScope::MakeClient(const ClientEnvironment& environment) const {
  return std::make_unique<LockClient>(*this, environment);
}

uint64_t LockScope::InitialWord(RemoteAddr at) const {
  if (at.offset == ExploredRegister::Buffer(0).offset() && at.node.value < options_.leftovers) {
    return LockWord({ref_.birth.value + kLeftoverTime}, LockMode::kRead).bits();
  }
  return ExploredRegister::InitialWord(ref_, at.offset);
}

// Two bits a time: the mode that has it.
Scope::SpecStep LockScope::Apply(uint64_t value, size_t client, size_t op) const {
  const int shift = Guess(client, op).time() == kLaterTime ? 2 : 0;
  const auto mine = static_cast<uint64_t>(Mode(client, op));
  const uint64_t other = 3 - mine;
  if ((value >> shift & other) != 0) return {value, 0};
  return {value | mine << shift, 1};
}

std::string LockScope::OnAccess(const AppliedAccess& access, const MemoryView& /*memory*/) const {
  const LockWord before(access.before);
  const LockWord after(access.after);
  if (before == after || after.ticks() > before.ticks()) return "";
  return after.ticks() < before.ticks() ? "a lock word went back"
                                        : "a lock word changed its mode for one time";
}

std::string LockScope::OnNote(size_t client, const Note& note, const MemoryView& memory) const {
  const LockWord asked(note.a);
  // Locks that a lost node held are not known.
  if (note.kind != kNoteNotLocked || memory.crashed_nodes() != 0) return "";
  for (int replica = 0; replica < 3; ++replica) {
    const RemoteAddr at = view_->Locate(ExploredRegister::Buffer(0), replica);
    const LockWord word(memory.Word(at));
    if (word.ticks() > asked.ticks() || (word.ticks() == asked.ticks() && word != asked)) return "";
  }
  return "client " + std::to_string(client) + " did not get a lock that nobody else asked for";
}

std::string LockScope::WordName(uint64_t bits) const {
  const LockWord word(bits);
  if (word.ticks() < ref_.birth) return std::to_string(bits);
  return std::string((bits & 3) == static_cast<uint64_t>(LockMode::kRead) ? "[READ" : "[WRITE") +
         " at " + std::to_string(word.ticks().value - ref_.birth.value) + "]";
}

}  // namespace onetrip
