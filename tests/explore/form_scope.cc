#include "tests/explore/form_scope.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/index/directory.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_codec.h"
#include "tests/explore/explore_master.h"
#include "tests/explore/form_worker.h"
#include "tests/explore/posted_round.h"

namespace onetrip {
namespace {

std::string NameOf(const FormOptions& options) {
  static constexpr const char* kForms[] = {"register", "blind record", "record", "thawed record"};
  std::string name;
  for (size_t i = 0; i < options.programs.size(); ++i) {
    name += (i == 0 ? "" : "||") + std::string(options.programs[i]);
  }
  return name + " of a " + kForms[static_cast<size_t>(options.start)];
}

std::vector<std::vector<ProgramOp>> ProgramsOf(const FormOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const std::string_view program : options.programs) {
    auto& ops = programs.emplace_back();
    for (const char kind : program) ops.push_back({kind, kind == 'G'});
  }
  return programs;
}

class FormClient final : public ExploredClient {
 public:
  FormClient(const FormScope& scope, const ClientEnvironment& environment)
      : scope_(scope),
        client_(environment.client),
        worker_(environment.executor, environment.fabric, scope.view(), client_,
                EngineKind::kSwarm) {}

  Task<bool> Open() override {
    const bool good = co_await worker_.Start();
    if (!good) co_return false;
    const bool warm = co_await worker_.WarmUp();
    if (!warm) co_return false;
    // Every client knows the key.
    const FormResult read = co_await worker_.Get(FormScope::kKey);
    co_return read.status.ok();
  }

  Task<OpResult> Run(size_t op) override {
    FormResult result;
    switch (scope_.programs()[client_][op].kind) {
      case 'S':
        result = co_await worker_.Set(FormScope::kKey, FormScope::NumberOf(client_, op));
        break;
      case 'I':
        result = co_await worker_.Increment(FormScope::kKey);
        break;
      case 'D':
        result = co_await worker_.Delete(FormScope::kKey);
        break;
      default:
        result = co_await worker_.Get(FormScope::kKey);
    }
    const StatusCode code = result.status.code();
    if (result.status.ok()) co_return OpResult{OpResult::Kind::kDone, result.value, ""};
    // A node that is lost takes the index with it, and a worker that died is waited for in vain.
    // That nothing was applied then is not made use of.
    const bool is_fault = scope_.faults().node_crashes + scope_.faults().worker_crashes > 0 &&
                          code == StatusCode::kUnavailable;
    if (code == StatusCode::kUnknownOutcome || is_fault) {
      co_return OpResult{OpResult::Kind::kUnknown, 0, ""};
    }
    co_return OpResult{OpResult::Kind::kBroken, 0, result.status.message()};
  }

 private:
  const FormScope& scope_;
  const size_t client_;
  FormWorker worker_;
};

Task<bool> MakeKey(FormWorker& worker, StartForm form) {
  const bool started = co_await worker.Start();
  if (!started) co_return false;
  FormResult made;
  switch (form) {
    case StartForm::kRegister:
    case StartForm::kBlindRecord:
      made = co_await worker.Set(FormScope::kKey, FormScope::kFirstNumber);
      break;
    case StartForm::kRecord:
      made = co_await worker.Write(FormScope::kKey, FormScope::kFirstNumber);
      break;
    case StartForm::kThawed:
      made = co_await worker.Set(FormScope::kKey, FormScope::kFirstNumber);
      if (!made.status.ok()) break;
      made = co_await worker.Thaw(FormScope::kKey);
      break;
  }
  co_return made.status.ok();
}

}  // namespace

FormScope::FormScope(FormOptions options)
    : Scope(NameOf(options), 3, ProgramsOf(options), options.faults),
      options_(std::move(options)),
      plan_(
          PlanRegister(kKey.size(), kKeyValueHeadBytes + FormWorker::kDigits, FormWorker::kLanes)),
      view_(MakeExploreView(3)),
      hash_(HashKey(kKeyspace, kKey)) {
  MakeMemory();
  NoteBlocks();
}

// By a worker behind the clients' last.
void FormScope::MakeMemory() {
  ExploreExecutor executor;
  executor.StandStill();
  ExploreFabric fabric(executor);
  const EngineKind engine =
      options_.start == StartForm::kBlindRecord ? EngineKind::kSnapshot : EngineKind::kSwarm;
  ScratchMemory memory([](RemoteAddr) { return 0; });
  {
    FormWorker worker(executor, fabric, view_, kClientsMax, engine);
    Task<bool> made = MakeKey(worker, options_.start);
    CHECK(memory.Finish(made, executor, fabric));
  }
  memory_ = memory.words();
  for (const auto& [block, size_class] : fabric.grants()) blocks_[block] = size_class;
  const RemoteAddr directory = view_->Locate(DirectoryAddr(0, 0), 0);
  subtable_ = DirectoryWord(memory.Word(directory)).subtable();
}

// The class of memory tells what lies where.
void FormScope::NoteBlocks() {
  CHECK(plan_.size_class != plan_.buffer_class);
  for (size_t client = 0; client < programs().size(); ++client) {
    ExploreExecutor executor;
    executor.StandStill();
    ExploreFabric fabric(executor);
    std::vector<Note> notes;
    {
      FormClient explored(*this, {client, executor, fabric, notes});
      ScratchMemory memory([this](RemoteAddr at) { return InitialWord(at); });
      Task<bool> open = explored.Open();
      CHECK(memory.Finish(open, executor, fabric));
    }
    for (const auto& [block, size_class] : fabric.grants()) blocks_[block] = size_class;
  }
}

uint64_t FormScope::InitialWord(RemoteAddr at) const {
  const auto found = memory_.find(ScratchMemory::KeyOf(at));
  return found == memory_.end() ? 0 : found->second;
}

FormScope::Place FormScope::PlaceOf(uint64_t offset) const {
  const auto block = static_cast<uint32_t>(offset / kBlockBytes);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {};
  const uint64_t first = block * kBlockBytes + FirstObjectOffset(block);
  if (offset < first) return {};
  const uint64_t bytes = found->second.bytes();
  const uint64_t at = (offset - first) % bytes;
  Place place{Part::kOther, offset - at, bytes, at};
  if (bytes == kSubtableBytes) {
    place.part = at / 8 % kGroupWords == kGroupHeaderWord ? Part::kOther : Part::kSlot;
  } else if (bytes == plan_.buffer_class.bytes()) {
    place.part = at == 0 ? Part::kLock : Part::kOther;
  } else if (bytes == plan_.size_class.bytes()) {
    const bool is_lane = at >= plan_.shape.lanes_offset() && at < plan_.shape.in_place_offset();
    place.part = is_lane              ? Part::kLane
                 : at == kSealOffset  ? Part::kSeal
                 : at == kFinalOffset ? Part::kFinal
                                      : Part::kOther;
  }
  return place;
}

bool FormScope::IsPolled(RemoteAddr at) const {
  const Part part = PlaceOf(at.offset).part;
  return part == Part::kSlot || part == Part::kFinal;
}

bool FormScope::IsNoStep(RemoteAddr at) const { return PlaceOf(at.offset).part == Part::kOther; }

// As in GuessScope; and of a slot's round all votes.
bool FormScope::IsLookedAtLater(const PostedRound& round, const CellTable& cells) const {
  for (const auto& accesses : round.by_node) {
    for (const Access& access : accesses) {
      const Part part = PlaceOf(cells.cell(access.cell).at.offset).part;
      if (part == Part::kSlot) return true;
      if (access.kind == FabricOpKind::kRead && part != Part::kSeal) return true;
    }
  }
  return false;
}

bool FormScope::IsOfBackground(const PostedRound& round, const CellTable& cells) const {
  for (const auto& accesses : round.by_node) {
    for (const Access& access : accesses) {
      const GlobalAddr at(0, cells.cell(access.cell).at.offset);
      if (PlaceOf(at.offset()).part == Part::kSlot) return true;
      // A record, found in a slot.
      if (blocks_.contains(at.block()) && blocks_.at(at.block()) != plan_.size_class &&
          blocks_.at(at.block()) != plan_.buffer_class) {
        return true;
      }
    }
  }
  return false;
}

std::unique_ptr<ExploredClient> FormScope::MakeClient(const ClientEnvironment& environment) const {
  return std::make_unique<FormClient>(*this, environment);
}

Scope::SpecStep FormScope::Apply(uint64_t value, size_t client, size_t op) const {
  switch (programs()[client][op].kind) {
    case 'S':
      return {NumberOf(client, op) + 1, 0};
    case 'I':
      return value == 0 ? SpecStep{2, 1} : SpecStep{value + 1, value};
    case 'D':
      return {0, value != 0 ? 1U : 0U};
    default:
      return {value, value == 0 ? 0 : value - 1};
  }
}

std::vector<uint64_t> FormScope::Slots(const MemoryView& memory, int replica) const {
  std::vector<uint64_t> slots;
  const Subtable table{subtable_, 0, 0};
  for (int choice = 0; choice < 2; ++choice) {
    const uint32_t first = CombinedFirstWord(hash_.side(choice));
    for (uint32_t i = first; i < first + kCombinedWords; ++i) {
      if (i == kGroupHeaderWord) continue;
      slots.push_back(memory.Word(view_->Locate(table.Word(hash_.group(choice), i), replica)));
    }
  }
  return slots;
}

bool FormScope::IsEntry(SlotWord word) const {
  return word.kind() == SlotKind::kObject && word.fingerprint() == hash_.fingerprint();
}

std::string FormScope::OnAccess(const AppliedAccess& access, const MemoryView& memory) const {
  if (!access.changed) return "";
  switch (PlaceOf(access.at.offset).part) {
    case Part::kLane:
      return access.after < access.before ? "a lane went back" : "";
    case Part::kSeal:
      return access.before != 0 ? "a seal was replaced" : "";
    case Part::kFinal:
      return access.before != 0 ? "a final word was replaced" : "";
    case Part::kSlot:
      break;
    default:
      return "";
  }
  if (access.at.node.value != 0) return "";
  int entries = 0;
  for (const uint64_t word : Slots(memory, 0)) entries += IsEntry(SlotWord(word)) ? 1 : 0;
  return entries <= 1 ? "" : "the key has two entries";
}

// True unless the first word of the register at `addr` is the largest that the replica at node 0,
// where values are kept, holds, and its value is not there.
bool FormScope::HasFirstValue(const MemoryView& memory, GlobalAddr addr) const {
  MetaWord largest;
  for (uint32_t lane = 0; lane < plan_.shape.lanes; ++lane) {
    const GlobalAddr at = addr + plan_.shape.lane_offset(lane);
    largest = std::max(largest, MetaWord(memory.Word(view_->Locate(at, 0))));
  }
  if (!largest.is_in_register()) return true;
  const ValuePlace place = PlaceOfValue(addr, plan_.shape, largest);
  std::vector<uint64_t> area(place.bytes / 8);
  for (size_t i = 0; i < area.size(); ++i) {
    area[i] = memory.Word(view_->Locate(place.addr + 8 * i, 0));
  }
  WrittenValue value{};
  return DecodePlaced({}, largest, std::as_bytes(std::span(area)).data(), place.bytes, &value);
}

std::string FormScope::OnQuiet(const MemoryView& memory, bool crashed) const {
  const std::vector<uint64_t> primary = Slots(memory, 0);
  for (const uint64_t bits : primary) {
    const SlotWord word(bits);
    if (!IsEntry(word) || !word.is_register()) continue;
    if (!HasFirstValue(memory, word.addr())) return "a register's first value is gone";
  }
  if (crashed) return "";
  for (int backup = 1; backup < view_->replicas; ++backup) {
    if (Slots(memory, backup) != primary) {
      return "backup " + std::to_string(backup) + " differs from the primary at quiescence";
    }
  }
  for (const uint64_t bits : primary) {
    const SlotWord word(bits);
    if (word.kind() == SlotKind::kTentative) return "a tentative entry is left behind";
    if (word.is_dropped()) return "a dropped register is left behind";
  }
  return "";
}

bool FormScope::RegisterValue(const MemoryView& memory, SlotWord word, uint64_t* value) const {
  MetaWord largest;
  int holders = 0;
  for (int replica = 0; replica < view_->replicas; ++replica) {
    if (memory.Word(view_->Locate(word.addr() + kSealOffset, replica)) != 0) return false;
    MetaWord here;
    for (uint32_t lane = 0; lane < plan_.shape.lanes; ++lane) {
      const GlobalAddr at = word.addr() + plan_.shape.lane_offset(lane);
      here = std::max(here, MetaWord(memory.Word(view_->Locate(at, replica))).AsGuess());
    }
    holders = here == largest ? holders + 1 : here > largest ? 1 : holders;
    largest = std::max(largest, here);
  }
  if (holders < 2) return false;
  const ValuePlace place = PlaceOfValue(word.addr(), plan_.shape, largest);
  const GlobalAddr digits = place.addr + PlacedBytes(largest, 0) + kKeyValueHeadBytes;
  const uint64_t number =
      FormWorker::NumberIn([&](uint64_t at) { return memory.Word(view_->Locate(digits + at, 0)); });
  *value = number + 1;
  return true;
}

bool FormScope::FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                           uint64_t* value) const {
  if (crashed_nodes != 0) return false;
  *value = 0;
  for (const uint64_t bits : Slots(memory, 0)) {
    const SlotWord word(bits);
    if (!IsEntry(word)) continue;
    if (word.is_register()) return RegisterValue(memory, word, value);
    std::vector<uint64_t> record(word.size_class().bytes() / 8);
    for (size_t i = 0; i < record.size(); ++i) {
      record[i] = memory.Word(view_->Locate(word.addr() + 8 * i, 0));
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(record.data());
    if (!RecordIsIntact(bytes, word.size_class().bytes())) return false;
    *value = FormWorker::NumberOf(RecordValue(bytes)) + 1;
  }
  return true;
}

std::string FormScope::WordName(uint64_t bits) const {
  const SlotWord slot(bits);
  const std::string where = " +" + std::to_string(slot.addr().block()) + "." +
                            std::to_string(slot.addr().offset() % kBlockBytes);
  if (slot.is_dropped()) return "[DROPPED for " + std::to_string(slot.credit()) + where + "]";
  if (slot.kind() == SlotKind::kTentative || IsEntry(slot)) {
    return std::string(slot.kind() == SlotKind::kTentative ? "[tentative " : "[") +
           (slot.is_register() ? "register" : "record") + where + "]";
  }
  return Scope::WordName(bits);
}

std::string FormScope::CellName(RemoteAddr at) const {
  const Place place = PlaceOf(at.offset);
  const std::string object =
      std::to_string(place.object / kBlockBytes) + "." + std::to_string(place.object % kBlockBytes);
  switch (place.part) {
    case Part::kSlot:
      return "slot " + std::to_string(place.at / 8);
    case Part::kLane:
      return "lane " + std::to_string((place.at - plan_.shape.lanes_offset()) / 8) + " of " +
             object;
    case Part::kSeal:
      return "seal of " + object;
    case Part::kFinal:
      return "final word of " + object;
    case Part::kLock:
      return "lock of buffer " + object;
    default:
      return object + " +" + std::to_string(place.at);
  }
}

}  // namespace onetrip
