#include "tests/explore/register_scope.h"

#include <utility>

#include "tests/explore/explore_master.h"

namespace onetrip {
namespace {

// Objects lie behind the slot: eight attempts of eight operations of each client, from kObjects on.
constexpr uint64_t kObjects = 4096;
constexpr uint64_t kAttempts = 8;
constexpr uint64_t kOps = 8;

uint64_t ObjectIndex(uint64_t word) {
  return (SlotWord(word).addr().offset() - kObjects) / kObjectAlignBytes;
}

std::string NameOf(const RegisterScopeOptions& options) {
  std::string name;
  for (const std::string_view program : options.programs) {
    if (!name.empty()) name += "||";
    name += program;
  }
  return options.commits_log ? name + " with log" : name;
}

std::vector<std::vector<ProgramOp>> ProgramsOf(const RegisterScopeOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const std::string_view program : options.programs) {
    CHECK(program.size() <= kOps);
    auto& ops = programs.emplace_back();
    for (const char kind : program) ops.push_back({kind, kind == 'R'});
  }
  return programs;
}

class RegisterClient final : public ExploredClient {
 public:
  RegisterClient(const RegisterScope& scope, const ClientEnvironment& environment)
      : options_(scope.options()),
        client_(environment.client),
        notes_(environment.notes),
        master_(scope.view()),
        hold_(environment.executor),
        context_(environment.executor, environment.fabric, master_, hold_,
                 {WorkerId{static_cast<uint32_t>(client_) + 1},
                  WorkerIndex{static_cast<uint16_t>(client_)}},
                 ExploreDataPathOptions()),
        engine_(options_.mutant != RegisterMutant::kNone || options_.uses_mutable_engine
                    ? MakeMutableSnapshot(options_.mutant, context_)
                    : MakeEngine(EngineKind::kSnapshot, context_)) {}

  Task<OpResult> Run(size_t op) override {
    switch (options_.programs[client_][op]) {
      case 'R':
        return Read();
      case 'W':
        return WriteBlindly(op);
      default:
        return Increment(op);
    }
  }

 private:
  static OpResult Failed(const Status& status) {
    const bool gave_up =
        status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
    if (gave_up) return {OpResult::Kind::kUnknown, 0, ""};
    return {OpResult::Kind::kBroken, 0, status.message()};
  }
  static OpResult Done(uint64_t value) { return {OpResult::Kind::kDone, value, ""}; }

  Task<Result<uint64_t>> ReadSlot(Operation& operation) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const uint64_t* word = round_trip->ReadWord(context_.view().Locate(RegisterScope::kSlot, 0));
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    co_return *word;
  }

  Task<OpResult> Read() {
    Operation operation;
    const Result<uint64_t> word = co_await ReadSlot(operation);
    co_return word.ok() ? Done(RegisterScope::ValueOf(word.value())) : Failed(word.status());
  }

  [[nodiscard]] GlobalAddr LogOf(SlotWord word) const {
    return options_.commits_log ? word.addr() : GlobalAddr();
  }

  // As SlotStore::SetBlind: one object for all rounds, and a look at the word that won.
  Task<OpResult> WriteBlindly(size_t op) {
    Operation operation;
    const SlotWord v_new = RegisterScope::WordOf(client_, op, 0, /*blind=*/true);
    while (true) {
      uint64_t v_old = written_;
      if (options_.mutant != RegisterMutant::kStaleExpected || v_old == 0) {
        const Result<uint64_t> word = co_await ReadSlot(operation);
        if (!word.ok()) co_return Failed(word.status());
        v_old = word.value();
      }
      const Result<SlotOutcome> outcome = co_await engine_->Write(
          operation, {RegisterScope::kSlot, v_old, v_new.bits(), LogOf(v_new)});
      if (!outcome.ok()) co_return Failed(outcome.status());
      if (outcome.value().won) {
        written_ = v_new.bits();
        co_return Done(0);
      }
      written_ = 0;
      notes_.push_back({RegisterScope::kNoteLost, v_old, outcome.value().current});
      const bool is_overwritten = SlotWord(outcome.value().current).blind();
      if (is_overwritten || options_.mutant == RegisterMutant::kBlindLoserAlwaysOk) {
        co_return Done(0);
      }
    }
  }

  // As SlotStore::ReadModifyWrite: another object for every attempt.
  Task<OpResult> Increment(size_t op) {
    Operation operation;
    for (size_t attempt = 0; attempt < kAttempts; ++attempt) {
      const Result<uint64_t> word = co_await ReadSlot(operation);
      if (!word.ok()) co_return Failed(word.status());
      const SlotWord v_new = RegisterScope::WordOf(client_, op, attempt, /*blind=*/false);
      const Result<SlotOutcome> outcome = co_await engine_->Write(
          operation, {RegisterScope::kSlot, word.value(), v_new.bits(), LogOf(v_new)});
      if (!outcome.ok()) co_return Failed(outcome.status());
      if (outcome.value().won) co_return Done(RegisterScope::ValueOf(word.value()));
      notes_.push_back({RegisterScope::kNoteLost, word.value(), outcome.value().current});
    }
    co_return OpResult{OpResult::Kind::kBroken, 0, "lost more rounds than there are writers"};
  }

  const RegisterScopeOptions& options_;
  const size_t client_;
  std::vector<Note>& notes_;
  ExploreMaster master_;
  Quiesce hold_;
  WorkerContext context_;
  std::unique_ptr<Engine> engine_;
  uint64_t written_ = 0;  // kStaleExpected: the word this client believes to be in the slot
};

}  // namespace

RegisterScope::RegisterScope(RegisterScopeOptions options)
    : Scope(NameOf(options), static_cast<size_t>(options.replicas), ProgramsOf(options),
            options.faults),
      options_(std::move(options)),
      view_(MakeExploreView(options_.replicas)) {}

SlotWord RegisterScope::WordOf(size_t client, size_t op, size_t attempt, bool blind) {
  const uint64_t index = ((client + 1) * kOps + op) * kAttempts + attempt;
  return SlotWord::Make(SlotKind::kObject, /*fingerprint=*/1, SizeClass(0),
                        GlobalAddr(0, kObjects + index * kObjectAlignBytes), blind);
}

uint64_t RegisterScope::ValueOf(uint64_t word) { return ObjectIndex(word) / kAttempts; }

std::unique_ptr<ExploredClient> RegisterScope::MakeClient(
    const ClientEnvironment& environment) const {
  return std::make_unique<RegisterClient>(*this, environment);
}

uint64_t RegisterScope::InitialWord(RemoteAddr at) const {
  if (at.offset != kSlot.offset()) return 0;
  return SlotWord::Make(SlotKind::kObject, 1, SizeClass(0), GlobalAddr(0, kObjects), false).bits();
}

Scope::SpecStep RegisterScope::Apply(uint64_t value, size_t client, size_t op) const {
  const uint64_t written = ValueOf(WordOf(client, op, 0, false).bits());
  switch (programs()[client][op].kind) {
    case 'R':
      return {value, value};
    case 'W':
      return {written, 0};
    default:
      return {written, value};
  }
}

// One winner a round, and the others' votes are gone before it shows.
std::string RegisterScope::OnAccess(const AppliedAccess& access, const MemoryView& memory) const {
  // Without backups no backup votes: the primary decides, and losers fail there.
  if (!options_.checks_memory || options_.replicas == 1) return "";
  if (access.at.node.value != 0 || access.at.offset != kSlot.offset() || !access.is_cas) return "";
  if (!access.changed) return "two winners of one round met in the primary";
  for (int backup = 1; backup < options_.replicas; ++backup) {
    const uint64_t word = memory.Word(Replica(backup));
    // A node that crashed shows 0, which is no slot word of this scope.
    if (word != access.after && word != 0) return "the primary changed before every backup had";
  }
  return "";
}

std::string RegisterScope::OnNote(size_t client, const Note& note, const MemoryView& memory) const {
  const uint64_t primary = memory.Word(Replica(0));
  if (note.kind != kNoteLost || primary == 0 || !options_.checks_memory) return "";
  if (note.b == note.a || primary == note.a) {
    return "client " + std::to_string(client) + " lost its round before the primary changed";
  }
  return "";
}

std::string RegisterScope::OnQuiet(const MemoryView& memory, bool crashed) const {
  if (crashed || !options_.checks_memory) return "";
  for (int backup = 1; backup < options_.replicas; ++backup) {
    if (memory.Word(Replica(backup)) != memory.Word(Replica(0))) {
      return "backup " + std::to_string(backup) + " differs from the primary at quiescence";
    }
  }
  return "";
}

bool RegisterScope::FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                               uint64_t* value) const {
  if ((crashed_nodes & 1) != 0) return false;
  *value = ValueOf(memory.Word(Replica(0)));
  return true;
}

std::string RegisterScope::WordName(uint64_t word) const {
  if (SlotWord(word).kind() != SlotKind::kObject) return std::to_string(word);
  const uint64_t index = ObjectIndex(word);
  if (index == 0) return "[initial]";
  return "[client " + std::to_string(index / kAttempts / kOps - 1) + " op " +
         std::to_string(index / kAttempts % kOps) + " attempt " +
         std::to_string(index % kAttempts) + (SlotWord(word).blind() ? " blind]" : "]");
}

std::string RegisterScope::CellName(RemoteAddr at) const {
  return at.offset == kSlot.offset() ? "slot" : Scope::CellName(at);
}

}  // namespace onetrip
