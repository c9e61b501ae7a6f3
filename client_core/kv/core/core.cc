#include "client_core/kv/core/core.h"

#include "client_core/layout/record_codec.h"

namespace onetrip {

KvCore::KvCore(WorkerContext& context, Engine& engine)
    : context(context),
      engine(engine),
      reclaimer(context),
      allocator(context, reclaimer),
      index(context, reclaimer, allocator, engine),
      hot(context, reclaimer),
      pages(context.options.page_cache_bytes),
      gate(context.executor) {
  metrics.allocator = &allocator.metrics();
  metrics.index = &index.metrics();
  if (engine.registers() == RegisterKind::kNone) return;
  registers = std::make_unique<Registers>(context, allocator, engine.registers());
  runs_inline = context.fabric.completes_inline() && !registers->by_abd;
  allocator.retired_registers().SetListener(&registers->cache);
  reclaimer.SetBeforeEpoch(&allocator.retired_registers());
}

bool KvCore::IsExpired(const std::byte* record) const {
  const uint64_t deadline_ms = LoadRecordHeader(record).deadline_ms;
  return deadline_ms != 0 && context.clock.NowMs() >= deadline_ms;
}

}  // namespace onetrip
