#include "tests/explore/tree_client.h"

#include <cstring>
#include <utility>

#include "client_core/coro/sync.h"
#include "tests/explore/tree_commands.h"
#include "tests/explore/tree_scope.h"

namespace onetrip {

TreeClient::TreeClient(const TreeScope& scope, const ClientEnvironment& environment)
    : scope_(scope),
      client_(environment.client),
      fabric_(environment.fabric),
      notes_(environment.notes),
      worker_(environment.executor, environment.fabric, scope.view(), client_) {
  if (!scope_.options().recycles) return;
  fabric_.Watch([this](RoundTrip& round_trip) { Watch(round_trip); });
}

Task<bool> TreeClient::Open() {
  const bool good = co_await worker_.Start();
  if (!good) co_return false;
  // As long as the key that is explored.
  const std::string warm_key(TreeScope::kKey.size(), 'w');
  const bool takes_memory = !scope_.options().recycles || !scope_.OnlyReads(client_);
  for (const std::string_view command : WarmCommands(scope_.options().kind)) {
    if (!takes_memory) break;
    const std::string reply = co_await worker_.Run(command, warm_key);
    if (reply.starts_with('-')) co_return false;
  }
  // Every client knows the key.
  const std::string_view reading = ReadingCommand(scope_.options().kind);
  const std::string read = co_await worker_.Run(reading, TreeScope::kKey);
  worker_.ledger() = MemoryLedger();
  worker_.ledger().notes = &notes_;
  notes_.clear();
  co_return scope_.ResultOf(reading, read) == scope_.InitialValue();
}

Task<OpResult> TreeClient::Run(size_t op) {
  const std::string_view command = scope_.options().programs[client_][op];
  const std::string reply = co_await RunBeside(command);
  const bool failed = reply.starts_with('-');
  co_await WriteLedger(failed);
  if (!failed) {
    co_return OpResult{OpResult::Kind::kDone, scope_.ResultOf(command, reply), ""};
  }
  const bool has_faults = scope_.faults().node_crashes + scope_.faults().worker_crashes > 0;
  const bool is_expelled = scope_.options().expelled == static_cast<int>(client_);
  if (is_expelled) notes_.push_back({TreeScope::kRefused, 0, 0});
  if (has_faults || is_expelled) co_return OpResult{OpResult::Kind::kUnknown, 0, ""};
  co_return OpResult{OpResult::Kind::kBroken, 0, scope_.Remember(reply)};
}

Task<std::string> TreeClient::RunBeside(std::string_view command) {
  std::string reply;
  std::vector<Task<void>> tasks;
  if (!CommandIn(command).empty()) tasks.push_back(RunInto(CommandIn(command), &reply));
  if (TicksIn(command) != 0) tasks.push_back(worker_.Maintain(TicksIn(command)));
  co_await WhenAll(std::move(tasks));
  co_return reply;
}

Task<void> TreeClient::RunInto(std::string_view command, std::string* reply) {
  *reply = co_await worker_.Run(command, TreeScope::kKey);
}

void TreeClient::Watch(RoundTrip& round_trip) {
  for (const FabricOp& op : round_trip.ops()) {
    if (op.kind != FabricOpKind::kRead || !scope_.IsPage(op.offset)) continue;
    const bool is_new = pages_read_.insert(op.offset).second;
    if (!is_new) notes_.push_back({TreeScope::kReadAgain, op.offset, 0});
  }
}

Task<void> TreeClient::WriteLedger(bool failed) {
  std::map<uint32_t, uint64_t> taken;
  std::map<uint32_t, uint64_t> given_back;
  for (const auto& [addr, size] : worker_.ledger().taken) {
    AddBit(addr, size, &taken);
    // All that was given back of the block may have been taken again.
    if (scope_.options().recycles) given_back[GlobalAddr(addr).block()] |= 0;
  }
  for (const auto& [addr, size] : worker_.ledger().given_back) AddBit(addr, size, &given_back);
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  using Word = TreeScope::LedgerWord;
  for (const auto& [block, bits] : taken) {
    Add(TreeScope::LedgerAt(client_, block, Word::kTaken), bits, round_trip);
  }
  for (const auto& [block, bits] : given_back) {
    Add(TreeScope::LedgerAt(client_, block, Word::kGivenBack), bits, round_trip);
  }
  if (failed) Add(TreeScope::UnknownAt(client_), 1, round_trip);
  if (round_trip->empty()) co_return;
  (void)co_await fabric_.Post(round_trip);
}

void TreeClient::AddBit(uint64_t addr, SizeClass size, std::map<uint32_t, uint64_t>* words) {
  const GlobalAddr at(addr);
  const uint64_t first = FirstObjectOffset(at.block());
  const uint64_t number = (at.offset() % kBlockBytes - first) / size.bytes();
  CHECK(number < TreeScope::kObjectsMax);
  (*words)[at.block()] |= uint64_t{1} << number;
}

void TreeClient::Add(RemoteAddr at, uint64_t word, RoundTripPtr& round_trip) {
  auto* bytes = round_trip->Reserve(sizeof(word));
  std::memcpy(bytes, &word, sizeof(word));
  round_trip->Write(at, bytes, sizeof(word));
}

}  // namespace onetrip
