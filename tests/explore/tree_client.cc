#include "tests/explore/tree_client.h"

#include <cstring>
#include <string_view>

#include "tests/explore/tree_commands.h"
#include "tests/explore/tree_scope.h"

namespace onetrip {

TreeClient::TreeClient(const TreeScope& scope, const ClientEnvironment& environment)
    : scope_(scope),
      client_(environment.client),
      fabric_(environment.fabric),
      notes_(environment.notes),
      worker_(environment.executor, environment.fabric, scope.view(), client_) {}

Task<bool> TreeClient::Open() {
  const bool good = co_await worker_.Start();
  if (!good) co_return false;
  // As long as the key that is explored.
  const std::string warm_key(TreeScope::kKey.size(), 'w');
  for (const std::string_view command : WarmCommands(scope_.options().kind)) {
    const std::string reply = co_await worker_.Run(command, warm_key);
    if (reply.starts_with('-')) co_return false;
  }
  // Every client knows the key.
  const std::string_view reading = ReadingCommand(scope_.options().kind);
  const std::string read = co_await worker_.Run(reading, TreeScope::kKey);
  worker_.ledger() = MemoryLedger();
  worker_.ledger().notes = &notes_;
  co_return scope_.ResultOf(reading, read) == scope_.InitialValue();
}

Task<OpResult> TreeClient::Run(size_t op) {
  const std::string_view command = scope_.options().programs[client_][op];
  const std::string reply = co_await worker_.Run(command, TreeScope::kKey);
  const bool failed = reply.starts_with('-');
  co_await WriteLedger(failed);
  if (!failed) {
    co_return OpResult{OpResult::Kind::kDone, scope_.ResultOf(command, reply), ""};
  }
  const bool has_faults = scope_.faults().node_crashes + scope_.faults().worker_crashes > 0;
  if (has_faults) co_return OpResult{OpResult::Kind::kUnknown, 0, ""};
  broken_ = reply;
  co_return OpResult{OpResult::Kind::kBroken, 0, broken_.c_str()};
}

Task<void> TreeClient::WriteLedger(bool failed) {
  std::map<uint32_t, uint64_t> taken;
  std::map<uint32_t, uint64_t> given_back;
  for (const auto& [addr, size] : worker_.ledger().taken) AddBit(addr, size, &taken);
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
