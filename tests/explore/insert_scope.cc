#include "tests/explore/insert_scope.h"

#include <cstring>
#include <utility>

#include "client_core/index/index.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/reclaim.h"
#include "client_core/replication/engine.h"
#include "tests/explore/explore_master.h"

namespace onetrip {
namespace {

constexpr uint64_t kSubtableOffset = kRootBlocks * kBlockBytes + kObjectAlignBytes;
constexpr uint64_t kRecordsOffset = (kRootBlocks + 1) * kBlockBytes;
constexpr uint64_t kRecordSlotBytes = 64;
constexpr uint64_t kAttempts = 8;
constexpr uint64_t kOps = 4;
constexpr uint64_t kRecords = kClientsMax * kOps * kAttempts;  // and the neighbour's

std::string NameOf(const InsertOptions& options) {
  std::string name = "insert ";
  for (size_t i = 0; i < options.programs.size(); ++i) {
    name += (i == 0 ? "" : "||") + std::string(options.programs[i]);
  }
  return name;
}

std::vector<std::vector<ProgramOp>> ProgramsOf(const InsertOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const std::string_view program : options.programs) {
    CHECK(program.size() <= kOps);
    auto& ops = programs.emplace_back();
    for (const char kind : program) ops.push_back({kind, kind == 'G'});
  }
  return programs;
}

class InsertClient final : public ExploredClient {
 public:
  InsertClient(const InsertScope& scope, const ClientEnvironment& environment)
      : options_(scope.options()),
        client_(environment.client),
        master_(scope.view()),
        hold_(environment.executor),
        context_(environment.executor, environment.fabric, master_, hold_,
                 {WorkerId{static_cast<uint32_t>(client_) + 1},
                  WorkerIndex{static_cast<uint16_t>(client_)}},
                 ExploreDataPathOptions()),
        reclaimer_(context_),
        allocator_(context_, reclaimer_),
        engine_(MakeEngine(EngineKind::kSnapshot, context_)),
        index_(context_, reclaimer_, allocator_, *engine_),
        key_(IndexKey::Make(InsertScope::kKeyspace, InsertScope::kKey)),
        neighbour_(IndexKey::Make(InsertScope::kKeyspace, scope.neighbour())) {}

  Task<bool> Open() override {
    const Status status = co_await index_.Open();
    co_return status.ok();
  }

  Task<OpResult> Run(size_t op) override {
    switch (options_.programs[client_][op]) {
      case 'I':
        return Insert(op);
      case 'D':
        return Remove(key_);
      case 'X':
        return Remove(neighbour_);
      default:
        return LookUp();
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
  static constexpr OpResult kBusy{OpResult::Kind::kBroken, 0, "busy, and nobody splits"};

  Task<OpResult> Insert(size_t op) {
    Operation operation;
    size_t attempt = 0;
    while (true) {
      SearchResult search;
      const Status status = co_await index_.Find(operation, key_, ReadExtent::kKey,
                                                 context_.fabric.NewRoundTrip(), &search);
      if (!status.ok()) co_return Failed(status);
      if (search.busy) co_return kBusy;
      if (search.found) co_return Done(0);
      const SlotWord word =
          SlotWord::Make(SlotKind::kObject, key_.hash.fingerprint(), SizeClass(0),
                         InsertScope::RecordOf(client_, op, attempt), /*blind=*/false);
      if (options_.mutant == InsertMutant::kNoSecondSearch) {
        const Result<SlotOutcome> placed = co_await engine_->Write(
            operation, {search.empty.slot, search.empty.word.bits(), word.bits(), GlobalAddr()});
        if (!placed.ok()) co_return Failed(placed.status());
        if (placed.value().won) co_return Done(1);
        continue;
      }
      Entry entry;
      const Result<InsertOutcome> outcome =
          co_await index_.Insert(operation, key_, search, word, RoundTripPtr(), &entry);
      if (!outcome.ok()) co_return Failed(outcome.status());
      if (outcome.value() == InsertOutcome::kInserted) co_return Done(1);
      if (outcome.value() == InsertOutcome::kRenew && ++attempt > options_.renewals_max) {
        co_return OpResult{OpResult::Kind::kUnknown, 0, ""};
      }
    }
  }

  Task<OpResult> Remove(IndexKey key) {
    Operation operation;
    while (true) {
      SearchResult search;
      const Status status = co_await index_.Find(operation, key, ReadExtent::kKey,
                                                 context_.fabric.NewRoundTrip(), &search);
      if (!status.ok()) co_return Failed(status);
      if (search.busy) co_return kBusy;
      if (!search.found) co_return Done(0);
      const Result<SlotOutcome> outcome =
          co_await engine_->Write(operation, {search.entry.slot, search.entry.word.bits(),
                                              index_.NewEmptyWord().bits(), GlobalAddr()});
      if (!outcome.ok()) co_return Failed(outcome.status());
      if (outcome.value().won) co_return Done(1);
    }
  }

  Task<OpResult> LookUp() {
    Operation operation;
    SearchResult search;
    const Status status = co_await index_.Find(operation, key_, ReadExtent::kKey,
                                               context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return Failed(status);
    if (search.busy) co_return kBusy;
    co_return Done(search.found ? InsertScope::InsertOf(search.entry.word.addr()) : 0);
  }

  const InsertOptions& options_;
  const size_t client_;
  ExploreMaster master_;
  Quiesce hold_;
  WorkerContext context_;
  Reclaimer reclaimer_;
  Allocator allocator_;
  std::unique_ptr<Engine> engine_;
  Index index_;
  const IndexKey key_;
  const IndexKey neighbour_;
};

}  // namespace

InsertScope::InsertScope(InsertOptions options)
    : Scope(NameOf(options), static_cast<size_t>(options.replicas), ProgramsOf(options),
            options.faults),
      options_(std::move(options)),
      view_(MakeExploreView(options_.replicas)),
      hash_(HashKey(kKeyspace, kKey)),
      records_((kRecords + 1) * kRecordSlotBytes / 8) {
  CHECK(options_.renewals_max < kAttempts);
  RecordFields fields;
  fields.keyspace = kKeyspace;
  fields.key = kKey;
  fields.opcode = LogOpcode::kInsert;
  KeyHash neighbour_hash;
  for (int i = 0; neighbour_.empty(); ++i) {
    const std::string candidate = "n" + std::to_string(i);
    neighbour_hash = KeyHash(HashKey(kKeyspace, candidate));
    if (neighbour_hash.group(0) == hash_.group(0) && neighbour_hash.side(0) == hash_.side(0) &&
        neighbour_hash.group(1) != hash_.group(1) &&
        neighbour_hash.fingerprint() != hash_.fingerprint()) {
      neighbour_ = candidate;
    }
  }
  // The last word of the bucket's own part.
  const uint32_t word = hash_.side(0) == 0 ? kGroupHeaderWord - 1 : kGroupWords - 1;
  neighbour_slot_ = Subtable{GlobalAddr(0, kSubtableOffset), 0, 0}.Word(hash_.group(0), word);
  CHECK(RecordBytes(neighbour_.size(), 0) <= kRecordSlotBytes);
  for (uint64_t i = 0; i <= kRecords; ++i) {
    if (i == kRecords) fields.key = neighbour_;
    fields.version = i + 1;
    EncodeRecord(fields, reinterpret_cast<std::byte*>(&records_[i * kRecordSlotBytes / 8]));
  }
}

GlobalAddr InsertScope::RecordOf(size_t client, size_t op, size_t attempt) {
  const uint64_t index = (client * kOps + op) * kAttempts + attempt;
  return {0, kRecordsOffset + index * kRecordSlotBytes};
}

uint64_t InsertScope::InsertOf(GlobalAddr record) {
  return (record.offset() - kRecordsOffset) / kRecordSlotBytes / kAttempts + 1;
}

std::unique_ptr<ExploredClient> InsertScope::MakeClient(
    const ClientEnvironment& environment) const {
  return std::make_unique<InsertClient>(*this, environment);
}

uint64_t InsertScope::InitialWord(RemoteAddr at) const {
  if (at.offset == DirectoryAddr(0, 0).offset()) {
    return DirectoryWord::Open(GlobalAddr(0, kSubtableOffset), 0).bits();
  }
  if (at.offset == neighbour_slot_.offset()) {
    return SlotWord::Make(SlotKind::kObject, KeyHash(HashKey(kKeyspace, neighbour_)).fingerprint(),
                          SizeClass(0), GlobalAddr(0, kRecordsOffset + kRecords * kRecordSlotBytes),
                          false)
        .bits();
  }
  if (at.offset >= kSubtableOffset && at.offset < kSubtableOffset + kSubtableBytes) {
    const uint64_t word = (at.offset - kSubtableOffset) / 8;
    return word % kGroupWords == kGroupHeaderWord ? GroupHeader(0, 0, false).bits() : 0;
  }
  const uint64_t record_word = (at.offset - kRecordsOffset) / 8;
  return at.offset >= kRecordsOffset && record_word < records_.size() ? records_[record_word] : 0;
}

Scope::SpecStep InsertScope::Apply(uint64_t value, size_t client, size_t op) const {
  switch (programs()[client][op].kind) {
    case 'I':
      if (value != 0) return {value, 0};
      return {InsertOf(RecordOf(client, op, 0)), 1};
    case 'D':
      return {0, value != 0 ? 1U : 0U};
    case 'X':
      return {value, 1};
    default:
      return {value, value};
  }
}

std::vector<uint64_t> InsertScope::Slots(const MemoryView& memory, int replica) const {
  std::vector<uint64_t> slots;
  const Subtable table{GlobalAddr(0, kSubtableOffset), 0, 0};
  for (int choice = 0; choice < 2; ++choice) {
    const uint32_t first = CombinedFirstWord(hash_.side(choice));
    for (uint32_t i = 0; i < kCombinedWords; ++i) {
      if (first + i == kGroupHeaderWord) continue;
      const GlobalAddr at = table.Word(hash_.group(choice), first + i);
      slots.push_back(memory.Word(view_->Locate(at, replica)));
    }
  }
  return slots;
}

// A committed entry of the key.
bool InsertScope::IsEntry(SlotWord word) const {
  return word.kind() == SlotKind::kObject && word.fingerprint() == hash_.fingerprint();
}

std::string InsertScope::OnAccess(const AppliedAccess& access, const MemoryView& memory) const {
  if (!access.changed || access.at.node.value != 0) return "";
  int entries = 0;
  for (const uint64_t word : Slots(memory, 0)) entries += IsEntry(SlotWord(word));
  return entries <= 1 ? "" : "the key has two entries";
}

std::string InsertScope::OnQuiet(const MemoryView& memory, bool crashed) const {
  if (crashed) return "";
  const std::vector<uint64_t> primary = Slots(memory, 0);
  for (int backup = 1; backup < options_.replicas; ++backup) {
    if (Slots(memory, backup) != primary) {
      return "backup " + std::to_string(backup) + " differs from the primary at quiescence";
    }
  }
  for (const uint64_t word : primary) {
    if (SlotWord(word).kind() == SlotKind::kTentative) return "a tentative entry is left behind";
  }
  return "";
}

bool InsertScope::FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                             uint64_t* value) const {
  if ((crashed_nodes & 1) != 0) return false;
  *value = 0;
  for (const uint64_t word : Slots(memory, 0)) {
    if (IsEntry(SlotWord(word))) *value = InsertOf(SlotWord(word).addr());
  }
  return true;
}

std::string InsertScope::WordName(uint64_t bits) const {
  const SlotWord word(bits);
  if (word.is_empty()) return bits < kRecords ? std::to_string(bits) : "[EMPTY, stamped]";
  if (word.addr().offset() < kRecordsOffset) return Scope::WordName(bits);
  const uint64_t record = (word.addr().offset() - kRecordsOffset) / kRecordSlotBytes;
  if (record == kRecords) return "[neighbour]";
  return std::string(word.kind() == SlotKind::kTentative ? "[tentative" : "[committed") +
         " client " + std::to_string(record / kAttempts / kOps) + " op " +
         std::to_string(record / kAttempts % kOps) + " attempt " +
         std::to_string(record % kAttempts) + "]";
}

std::string InsertScope::CellName(RemoteAddr at) const {
  if (at.offset >= kRecordsOffset) {
    return "record " + std::to_string((at.offset - kRecordsOffset) / kRecordSlotBytes) + " +" +
           std::to_string((at.offset - kRecordsOffset) % kRecordSlotBytes);
  }
  const uint64_t word = (at.offset - kSubtableOffset) / 8;
  return "group " + std::to_string(word / kGroupWords) + " word " +
         std::to_string(word % kGroupWords);
}

}  // namespace onetrip
