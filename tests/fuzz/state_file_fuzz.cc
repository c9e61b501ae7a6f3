// Fuzz target: what lies beside an image as FILE.state is a copy of a master's state, or refused; a
// master that is rebuilt from it starts and goes on, or says what makes no sense; and no copy makes
// it take more room than the copy's own bytes justify.
//
// The first byte says what the rest is: a file, a file's body, or the changes in it, each behind
// two bytes that count it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "client_core/control/kept_state.h"
#include "master/rebuild.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/master_checks.h"

namespace onetrip {
namespace {

constexpr uint32_t kWorkersMax = 1 << 12;

enum Form : uint8_t { kFile, kBody, kChanges, kForms };

std::string FileOf(FuzzInput* input) {
  const uint8_t form = input->TakeByte() % kForms;
  if (form == kFile) return input->TakeRest();
  control::Recalled recalled;
  if (form == kBody) {
    if (!recalled.ParseFromString(input->TakeRest())) return "";
  } else {
    recalled.set_version(input->TakeByte());
    recalled.set_incarnation(input->Take<uint16_t>());
    recalled.set_next_worker(input->Take<uint32_t>());
    while (!input->empty()) recalled.add_changes(input->TakeText(input->Take<uint16_t>()));
  }
  return EncodeStateFile(recalled);
}

void CheckChanges(const control::Recalled& recalled) {
  for (const std::string& bytes : recalled.changes()) {
    const Result<DurableChange> change = DecodeChange(bytes);
    if (change.ok()) CheckChangeTravels(*change);
  }
}

// Members of the old cluster come back to the new master.
void ComeBack(FuzzMaster* master) {
  StreamId stream = 0;
  const DurableState before = master->disk();
  for (const auto& [id, agent] : before.agents) {
    MemberHello hello;
    hello.kind = MemberKind::kAgent;
    hello.cluster = master->coordinator().cluster();
    hello.member = id;
    hello.pid = agent.pid;
    master->coordinator().Attend(master->now_us(), ++stream, hello);
    master->Settle();
    if (stream == 3) break;
  }
  for (size_t node = 0; node < before.nodes.size() && node < 4; ++node) {
    MemberHello hello;
    hello.kind = MemberKind::kMemoryNode;
    hello.cluster = master->coordinator().cluster();
    master->coordinator().Attend(master->now_us(), ++stream, hello);
    const NodeRecord& record = before.nodes[node];
    JoinNodeRequest join{.bytes = record.bytes, .incarnation = record.incarnation, .adopted = true};
    join.owner_cluster = hello.cluster;
    join.owner_node = static_cast<uint32_t>(node);
    join.mark = record.mark;
    master->coordinator().OnMessage(master->now_us(), stream, RequestMessage{1, join});
    master->Settle();
    master->coordinator().OnMessage(master->now_us(), stream,
                                    RequestMessage{2, ServeNodeRequest{record.address}});
    master->Settle();
  }
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  onetrip::SilenceProtobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  FuzzInput input(data, size);
  control::Recalled recalled;
  if (!DecodeStateFile(FileOf(&input), &recalled).ok()) return 0;
  control::Recalled again;
  CHECK(DecodeStateFile(EncodeStateFile(recalled), &again).ok());
  CHECK(again.SerializeAsString() == recalled.SerializeAsString());
  KeptState kept;
  kept.Restore(recalled);
  CHECK(kept.version() == recalled.version());
  CheckChanges(recalled);

  Rebuild rebuild;
  std::string reason;
  if (!rebuild.AddFile(recalled, &reason).ok()) {
    CheckLine(reason);
    return 0;
  }
  (void)rebuild.MissingText();
  // Each number below it that the copy does not know is a worker to be refused: a long list,
  // rightly.
  if (recalled.next_worker() > kWorkersMax) return 0;
  const Result<DurableState> state = rebuild.Make(/*unix_us=*/1'700'000'000'000'000, true, &reason);
  if (!state.ok()) {
    CheckLine(reason);
    return 0;
  }
  FuzzMaster master;
  if (!master.Start(CoordinatorOptions(), *state)) return 0;
  CheckView(master.coordinator().view());
  CheckViewTravels(master.coordinator().view());
  ComeBack(&master);
  for (int i = 0; i < 10; ++i) master.Pass(1000);
  (void)master.coordinator().Status(master.now_us());
  CHECK(master.Restart());
  return 0;
}
