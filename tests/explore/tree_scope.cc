#include "tests/explore/tree_scope.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/index/directory.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"
#include "tests/explore/posted_round.h"
#include "tests/explore/tree_client.h"

namespace onetrip {
namespace {

constexpr uint64_t kLedgerOffset = (kBlocksPerRegion - 1) * kBlockBytes;
constexpr uint64_t kLedgerBytes = 16 * kBlocksPerRegion + 8;  // a client has

std::string NameOf(const TreeOptions& options) {
  static constexpr const char* kKinds[] = {"hash", "list", "sorted set"};
  std::string name = std::string(kKinds[static_cast<size_t>(options.kind)]) + " ";
  for (size_t i = 0; i < options.programs.size(); ++i) {
    if (i > 0) name += " || ";
    for (size_t op = 0; op < options.programs[i].size(); ++op) {
      name += (op == 0 ? "" : ", ") + std::string(options.programs[i][op]);
    }
  }
  return name;
}

std::vector<std::vector<ProgramOp>> ProgramsOf(const TreeOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const auto& program : options.programs) {
    auto& ops = programs.emplace_back();
    for (const std::string_view command : program) ops.push_back({command[0], ReadsOnly(command)});
  }
  return programs;
}

std::shared_ptr<const View> ViewOf(const TreeOptions& options) {
  std::shared_ptr<const View> plain = MakeExploreView(3);
  if (!options.recycles) return plain;
  auto view = std::make_shared<View>(*plain);
  view->worker_index_end = static_cast<uint16_t>(options.programs.size());
  for (uint16_t seat = 0; seat < view->worker_index_end; ++seat) {
    view->SetLive(WorkerIndex{seat}, seat != options.expelled);
  }
  return view;
}

// The memory of node 0 as a tree's pages.
class ViewedPages final : public PageSource {
 public:
  ViewedPages(const MemoryView& memory, const View& view) : memory_(memory), view_(view) {}
  const std::string_view* Find(const PageRef& page) const override {
    auto [found, is_new] = pages_.try_emplace(page.addr.bits());
    if (is_new) {
      std::string bytes((page.bytes + 7) / 8 * 8, '\0');
      for (size_t at = 0; at < bytes.size(); at += 8) {
        const uint64_t word = memory_.Word(view_.Locate(page.addr + at, 0));
        std::memcpy(bytes.data() + at, &word, sizeof(word));
      }
      bytes.resize(page.bytes);
      found->second.first = std::move(bytes);
      found->second.second = found->second.first;
    }
    return PageChecksum(found->second.first) == page.checksum ? &found->second.second : nullptr;
  }

 private:
  const MemoryView& memory_;
  const View& view_;
  mutable std::map<uint64_t, std::pair<std::string, std::string_view>> pages_;
};

}  // namespace

TreeScope::TreeScope(TreeOptions options)
    : Scope(NameOf(options), 3, ProgramsOf(options), options.faults),
      options_(std::move(options)),
      view_(ViewOf(options_)),
      hash_(HashKey(kKeyspace, kKey)) {
  MakeMemory();
}

// By a worker behind the clients' last.
void TreeScope::MakeMemory() {
  ExploreExecutor executor;
  executor.StandStill();
  ExploreFabric fabric(executor);
  ScratchMemory memory([](RemoteAddr) { return 0; });
  MemoryLedger ledger;
  {
    TreeWorker worker(executor, fabric, view_, kClientsMax);
    const auto make = [](TreeWorker* by, TreeKind kind, MemoryLedger* kept, uint64_t* initial,
                         const TreeScope* scope) -> Task<bool> {
      const bool started = co_await by->Start();
      if (!started) co_return false;
      by->ledger() = MemoryLedger();
      for (const std::string_view command : MakersCommands(kind)) {
        const std::string reply = co_await by->Run(command, kKey);
        if (reply.starts_with('-')) co_return false;
      }
      *kept = by->ledger();
      const std::string_view reading = ReadingCommand(kind);
      const std::string read = co_await by->Run(reading, kKey);
      *initial = scope->ResultOf(reading, read);
      co_return true;
    };
    Task<bool> made = make(&worker, options_.kind, &ledger, &initial_, this);
    CHECK(memory.Finish(made, executor, fabric));
  }
  memory_ = memory.words();
  for (const auto& [addr, size] : ledger.taken) {
    if (!ledger.given_back.contains(addr)) made_.emplace(addr, size);
  }
  for (const auto& [block, size_class] : fabric.grants()) blocks_[block] = size_class;
  const RemoteAddr directory = view_->Locate(DirectoryAddr(0, 0), 0);
  subtable_ = DirectoryWord(memory.Word(directory)).subtable();
  for (size_t client = 0; client < programs().size(); ++client) {
    ExploreFabric own(executor);
    std::vector<Note> notes;
    {
      TreeClient explored(*this, {client, executor, own, notes});
      ScratchMemory scratch([this](RemoteAddr at) { return InitialWord(at); });
      Task<bool> open = explored.Open();
      CHECK(scratch.Finish(open, executor, own));
    }
    for (const auto& [block, size_class] : own.grants()) blocks_[block] = size_class;
  }
  if (options_.recycles) PublishFirstEpochs();
}

// As if all had joined before any of them begins.
void TreeScope::PublishFirstEpochs() {
  ScratchMemory::Words published;
  for (size_t client = 0; client < programs().size(); ++client) {
    ExploreExecutor executor;
    executor.StandStill();
    ExploreFabric fabric(executor);
    std::vector<Note> notes;
    TreeClient explored(*this, {client, executor, fabric, notes});
    ScratchMemory scratch([this](RemoteAddr at) { return InitialWord(at); });
    Task<bool> open = explored.Open();
    CHECK(scratch.Finish(open, executor, fabric));
    const GlobalAddr entry = EpochEntryAddr(WorkerIndex{static_cast<uint16_t>(client)});
    for (int replica = 0; replica < view_->replicas; ++replica) {
      for (uint64_t at = 0; at < sizeof(EpochEntry); at += 8) {
        const RemoteAddr word = view_->Locate(entry + at, replica);
        published[ScratchMemory::KeyOf(word)] = scratch.Word(word);
      }
    }
  }
  memory_.insert(published.begin(), published.end());
}

uint64_t TreeScope::InitialWord(RemoteAddr at) const {
  const auto found = memory_.find(ScratchMemory::KeyOf(at));
  return found == memory_.end() ? 0 : found->second;
}

size_t TreeScope::PagesBehind(std::string_view command) const {
  ExploreExecutor executor;
  executor.StandStill();
  ExploreFabric fabric(executor);
  ScratchMemory scratch([this](RemoteAddr at) { return InitialWord(at); });
  {
    TreeWorker worker(executor, fabric, view_, 0);
    const auto change = [](TreeWorker* by, std::string_view wanted) -> Task<bool> {
      const bool started = co_await by->Start();
      if (!started) co_return false;
      const std::string reply = co_await by->Run(wanted, kKey);
      co_return !reply.starts_with('-');
    };
    Task<bool> changed = change(&worker, command);
    CHECK(scratch.Finish(changed, executor, fabric));
  }
  class Scratch final : public MemoryView {
   public:
    explicit Scratch(const ScratchMemory& memory) : memory_(memory) {}
    [[nodiscard]] uint64_t Word(RemoteAddr at) const override { return memory_.Word(at); }
    [[nodiscard]] uint32_t crashed_nodes() const override { return 0; }

   private:
    const ScratchMemory& memory_;
  };
  const Scratch memory(scratch);
  const SlotWord slot = PrimarySlot(memory);
  const Named named = NamedBy(memory, slot.addr(), slot.size_class());
  CHECK(named.wrong.empty());
  return named.objects.size() - 1;
}

RemoteAddr TreeScope::UnknownAt(size_t client) {
  return {NodeId{0}, kLedgerOffset + client * kLedgerBytes + 16 * kBlocksPerRegion};
}

RemoteAddr TreeScope::LedgerAt(size_t client, uint32_t block, LedgerWord word) {
  return {NodeId{0},
          kLedgerOffset + client * kLedgerBytes + 16 * block + 8 * static_cast<uint64_t>(word)};
}

bool TreeScope::IsSlot(uint64_t offset) const {
  const uint64_t begin = subtable_.offset();
  if (offset < begin || offset >= begin + kSubtableBytes) return false;
  return (offset - begin) / 8 % kGroupWords != kGroupHeaderWord;
}

bool TreeScope::IsPassed(uint64_t offset) const {
  const bool is_of_table =
      offset >= kEpochTableOffset &&
      offset < kEpochTableOffset + view_->worker_index_end * sizeof(EpochEntry);
  return is_of_table && (offset - kEpochTableOffset) % sizeof(EpochEntry) == 0;
}

bool TreeScope::IsPage(uint64_t offset) const {
  if (!options_.recycles) return false;
  const auto block = static_cast<uint32_t>(offset / kBlockBytes);
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || found->second != SizeClass::For(1)) return false;
  const uint64_t first = FirstObjectOffset(block);
  const uint64_t in_block = offset % kBlockBytes;
  return in_block >= first && (in_block - first) % found->second.bytes() == 0;
}

bool TreeScope::OnlyReads(size_t client) const {
  const auto& program = options_.programs[client];
  return std::all_of(program.begin(), program.end(), ReadsOnly);
}

bool TreeScope::IsLookedAtLater(const PostedRound& round, const CellTable& cells) const {
  for (const auto& accesses : round.by_node) {
    for (const Access& access : accesses) {
      if (access.kind == FabricOpKind::kRead) return true;
      if (IsSlot(cells.cell(access.cell).at.offset)) return true;
    }
  }
  return false;
}

// All but what a ledger is written by.
bool TreeScope::IsOfBackground(const PostedRound& round, const CellTable& cells) const {
  for (const auto& accesses : round.by_node) {
    for (const Access& access : accesses) {
      if (cells.cell(access.cell).at.offset < kLedgerOffset) return true;
    }
  }
  return false;
}

std::unique_ptr<ExploredClient> TreeScope::MakeClient(const ClientEnvironment& environment) const {
  return std::make_unique<TreeClient>(*this, environment);
}

std::vector<uint64_t> TreeScope::Slots(const MemoryView& memory, int replica) const {
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

SlotWord TreeScope::PrimarySlot(const MemoryView& memory) const {
  for (const uint64_t bits : Slots(memory, 0)) {
    const SlotWord word(bits);
    if (word.kind() == SlotKind::kObject && word.fingerprint() == hash_.fingerprint()) return word;
  }
  return SlotWord(0);
}

TreeScope::Named TreeScope::NamedBy(const MemoryView& memory, GlobalAddr record,
                                    SizeClass size) const {
  Named named;
  named.objects.emplace(record.bits(), size);
  std::vector<uint64_t> words(size.bytes() / 8);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = memory.Word(view_->Locate(record + 8 * i, 0));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  if (!RecordIsIntact(bytes, size.bytes())) {
    named.wrong = "a record is not intact";
    return named;
  }
  TreeRoot root;
  if (!size.is_root() || !LoadTreeRoot(RecordValue(bytes), &root)) return named;
  const ViewedPages pages(memory, *view_);
  Tree tree(root, pages, kExploredTree);
  if (!tree.NeedAll(/*inner_only=*/false)) {
    named.wrong = "a page is not what its name says";
    return named;
  }
  tree.ForEachPage([&named](const PageName& name, bool /*is_leaf*/) {
    const bool is_new = named.objects.emplace(name.page.addr.bits(), name.page.size_class).second;
    if (!is_new) named.wrong = "a page is named twice";
  });
  return named;
}

void TreeScope::CountRead(const AppliedAccess& access, const MemoryView& memory) const {
  const SlotWord slot = PrimarySlot(memory);
  const Named named = NamedBy(memory, slot.addr(), slot.size_class());
  if (!named.objects.contains(GlobalAddr(0, access.at.offset).bits())) ++met_.read_behind;
}

std::string TreeScope::OnAccess(const AppliedAccess& access, const MemoryView& memory) const {
  if (IsPage(access.at.offset) && OnlyReads(access.client)) CountRead(access, memory);
  if (!access.changed || access.at.node.value != 0 || !IsSlot(access.at.offset)) return "";
  const SlotWord slot = PrimarySlot(memory);
  if (slot.is_empty()) return "";
  return NamedBy(memory, slot.addr(), slot.size_class()).wrong;
}

std::string TreeScope::OnNote(size_t /*client*/, const Note& note, const MemoryView& memory) const {
  if (note.kind == MemoryLedger::kGivenBackTwice) return "an object is given back twice";
  if (note.kind == kReadAgain) ++met_.read_again;
  if (note.kind == kRefused) ++met_.refused;
  if (note.kind == kReadAgain || note.kind == kRefused) return "";
  const bool is_taken = note.kind == MemoryLedger::kTakenAgain;
  if (is_taken) ++met_.taken_again;
  if ((memory.crashed_nodes() & 1) != 0) return "";
  const SlotWord slot = PrimarySlot(memory);
  if (slot.is_empty()) return "";
  const Named named = NamedBy(memory, slot.addr(), slot.size_class());
  if (!named.objects.contains(note.a)) return "";
  return is_taken ? "an object is taken that the slot's root names"
                  : "an object is given back that the slot's root names";
}

bool TreeScope::LiveObjects(const MemoryView& memory, Objects* live) const {
  *live = made_;
  Objects gone;
  bool good = true;
  for (const bool is_taken : {true, false}) {
    for (size_t client = 0; client < programs().size(); ++client) {
      for (const auto& [block, size] : blocks_) {
        const auto word = is_taken ? LedgerWord::kTaken : LedgerWord::kGivenBack;
        const uint64_t bits = memory.Word(LedgerAt(client, block, word));
        for (uint32_t i = 0; i < kObjectsMax; ++i) {
          if ((bits >> i & 1) == 0) continue;
          const GlobalAddr at(0, block * kBlockBytes + FirstObjectOffset(block) + i * size.bytes());
          if (is_taken) {
            live->emplace(at.bits(), size);
          } else {
            good = gone.emplace(at.bits(), size).second && good;
          }
        }
      }
    }
  }
  for (const auto& [addr, size] : gone) live->erase(addr);
  return good;
}

// A command of no known outcome, and one that its worker has not lived to end, may leave the record
// that it took out of the index, with its pages, and what it wrote itself, in its worker's blocks.
std::string TreeScope::CheckLeft(const MemoryView& memory, const Objects& left) const {
  const auto dead_max = static_cast<size_t>(faults().worker_crashes);
  std::set<size_t> unknown;
  for (size_t client = 0; client < programs().size(); ++client) {
    if (memory.Word(UnknownAt(client)) != 0) unknown.insert(client);
  }
  Objects unlinked;
  size_t records = 0;
  for (const auto& [addr, size] : left) {
    const bool is_page = size == SizeClass::For(1);
    if (is_page) continue;
    ++records;
    unlinked.merge(NamedBy(memory, GlobalAddr(addr), size).objects);
  }
  if (records > 2 * unknown.size() + dead_max) return "records are left that no command may leave";
  std::set<size_t> dead;
  for (const auto& [addr, size] : left) {
    if (unlinked.contains(addr)) continue;
    const size_t seat = (GlobalAddr(addr).block() - TreeWorker::FirstBlockOf(0)) /
                        (TreeWorker::FirstBlockOf(1) - TreeWorker::FirstBlockOf(0));
    if (!unknown.contains(seat)) dead.insert(seat);
  }
  const bool is_of_maker = !dead.empty() && *dead.rbegin() >= programs().size();
  return is_of_maker || dead.size() > dead_max ? "pages are left that no command may leave" : "";
}

std::string TreeScope::OnQuiet(const MemoryView& memory, bool crashed) const {
  if ((memory.crashed_nodes() & 1) != 0) return "";
  const std::vector<uint64_t> primary = Slots(memory, 0);
  for (int backup = 1; backup < view_->replicas && !crashed; ++backup) {
    if (Slots(memory, backup) != primary) {
      return "backup " + std::to_string(backup) + " differs from the primary at quiescence";
    }
  }
  Objects live;
  if (!LiveObjects(memory, &live)) return "two workers have given one object back";
  Objects named;
  const SlotWord slot = PrimarySlot(memory);
  if (!slot.is_empty()) {
    Named now = NamedBy(memory, slot.addr(), slot.size_class());
    if (!now.wrong.empty()) return now.wrong;
    named = std::move(now.objects);
  }
  bool has_unknown = crashed;
  for (size_t client = 0; client < programs().size(); ++client) {
    has_unknown = has_unknown || memory.Word(UnknownAt(client)) != 0;
  }
  for (const auto& [addr, size] : named) {
    // The worker that made it has not lived to write its ledger.
    if (live.erase(addr) == 0 && !has_unknown) return "the root names what was given back";
  }
  if (live.empty()) return "";
  if (!has_unknown) return std::to_string(live.size()) + " objects are left that no root names";
  return CheckLeft(memory, live);
}

bool TreeScope::FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                           uint64_t* value) const {
  if (crashed_nodes != 0) return false;
  ExploreExecutor executor;
  executor.StandStill();
  ExploreFabric fabric(executor);
  ScratchMemory scratch([&memory](RemoteAddr at) { return memory.Word(at); });
  std::string reply;
  const std::string_view reading = ReadingCommand(options_.kind);
  {
    TreeWorker worker(executor, fabric, view_, kClientsMax);
    const auto read = [](TreeWorker* by, std::string_view command,
                         std::string* into) -> Task<bool> {
      const bool started = co_await by->Start();
      if (!started) co_return false;
      *into = co_await by->Run(command, kKey);
      co_return !into->starts_with('-');
    };
    Task<bool> done = read(&worker, reading, &reply);
    if (!scratch.Finish(done, executor, fabric)) return false;
  }
  *value = ResultOf(reading, reply);
  return true;
}

std::string TreeScope::WordName(uint64_t bits) const {
  const SlotWord slot(bits);
  if (slot.kind() != SlotKind::kObject || slot.fingerprint() != hash_.fingerprint()) {
    return Scope::WordName(bits);
  }
  return std::string(slot.size_class().is_root() ? "[root +" : "[record +") +
         std::to_string(slot.addr().block()) + "." +
         std::to_string(slot.addr().offset() % kBlockBytes) + "]";
}

std::string TreeScope::CellName(RemoteAddr at) const {
  if (IsSlot(at.offset)) return "slot " + std::to_string((at.offset - subtable_.offset()) / 8);
  return std::to_string(at.offset / kBlockBytes) + "." + std::to_string(at.offset % kBlockBytes);
}

}  // namespace onetrip
