// Fuzz target: what is taken for a view is one whose users never leave the map, and telling it on
// loses nothing of it; all other bytes are refused, with a reason.
//
// The input is the view's message.
#include <cstddef>
#include <cstdint>
#include <string>

#include "client_core/cluster/unreached_nodes.h"
#include "tests/fuzz/view_checks.h"

namespace onetrip {
namespace {

// CHECKs that nothing that `message` says is missing from `view`.
void CheckSaysAll(control::View message, const View& view) {
  control::View again;
  EncodeView(view, &again);
  message.DiscardUnknownFields();
  for (control::Node& node : *message.mutable_nodes()) (void)node.mutable_address();
  CHECK(message.SerializeAsString() == again.SerializeAsString());
}

// Uses a view as processes do besides looking up addresses.
void Use(const View& view) {
  for (const uint16_t index : {0, 63, 64, 1023}) {
    View changed = view;
    changed.SetLive(WorkerIndex{index}, !view.IsLive(WorkerIndex{index}));
    CHECK(changed.IsLive(WorkerIndex{index}) != view.IsLive(WorkerIndex{index}));
    CHECK(changed.SamePlaces(view));
  }
  CHECK(!view.IsOut(NodeId{UINT16_MAX}) && !view.Contains(GlobalAddr(UINT64_MAX)));
  UnreachedNodes unreached;
  unreached.UseView(view);
  for (const NodeId node : unreached.ToProbe()) CHECK(view.IsOut(node));
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  onetrip::SilenceProtobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  control::View message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  std::string reason;
  const Result<View> view = DecodeView(message, &reason);
  if (!view.ok()) {
    CHECK(!reason.empty() && reason.find('\n') == std::string::npos);
    return 0;
  }
  CheckView(*view);
  CheckViewTravels(*view);
  CheckSaysAll(message, *view);
  Use(*view);
  return 0;
}
