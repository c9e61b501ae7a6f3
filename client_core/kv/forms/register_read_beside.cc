#include "client_core/kv/forms/register_read_beside.h"

#include "client_core/layout/entry_codec.h"

namespace onetrip {

// The slot was read under a pin that is still held, so the register is there until the operation
// ends, whichever key it has.
void RegisterReadBeside::BeginBeside(SlotWord word) {
  Begin(word);
  if (call_.has_value()) call_->SetBeside();
}

// Stragglers need a pin of their own.
void RegisterReadBeside::Begin(SlotWord word) {
  call_.reset();
  if (!core_.registers || !word.is_register() || !core_.context.view().Contains(word.addr())) {
    return;
  }
  addr_ = word.addr();
  call_.emplace(core_.context.executor, ReplicaNodes::Of(core_.context.view(), addr_),
                SharedPin(core_.reclaimer.Pin()));
  const RegisterShape expected{.lanes = core_.registers->Lanes(core_.context.options),
                               .key_bytes = static_cast<uint32_t>(key_.bytes.size())};
  core_.registers->safe_guess.max_register().BeginRead(word, expected, &*call_);
}

bool RegisterReadBeside::HasKey(const RegisterRef& ref) const {
  for (int replica = 0; call_.has_value() && replica < call_->replicas(); ++replica) {
    const std::byte* const image = call_->reply(replica).image;
    if (image == nullptr || !InNOut::IsOf(ref, image)) continue;
    return RegisterHasKey(image, kRegisterHeaderBytes + ref.shape.key_bytes, key_.keyspace,
                          key_.bytes);
  }
  return false;
}

}  // namespace onetrip
