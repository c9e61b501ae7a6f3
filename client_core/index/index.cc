#include "client_core/index/index.h"

#include <vector>

namespace onetrip {

Index::Index(WorkerContext& context, Reclaimer& reclaimer, Allocator& allocator, Engine& engine)
    : context_(context),
      reclaimer_(reclaimer),
      allocator_(allocator),
      engine_(engine),
      directory_(context),
      mover_(context, allocator, engine, directory_),
      claims_(context, engine),
      cache_(context.options.location_cache_bytes) {
  metrics_.cache_bytes.Set(cache_.bytes());
}

Task<Status> Index::Open() {
  Operation operation;
  directory_.Use(context_.view().directory);
  Result<DirectoryWord> root = co_await directory_.Refresh(operation, 0);
  if (!root.ok()) co_return root.status();
  if (root.value().is_used()) co_return Status::Ok();

  const SizeClass size_class = SizeClass::For(kSubtableBytes);
  const Allocator::Holder holder(allocator_);
  const Result<GlobalAddr> start = co_await allocator_.Allocate(size_class);
  if (!start.ok()) co_return start.status();
  Status status =
      co_await FormatSubtable(operation, start.value(), GroupHeader(0, 0, /*filling=*/false));
  if (!status.ok()) co_return status;
  const DirectoryWord first = DirectoryWord::Open(start.value(), 0);
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, {directory_.AddrOf(0), 0, first.bits(), GlobalAddr()});
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won) {
    metrics_.subtable_bytes.Add(kSubtableBytes);
  } else {
    allocator_.FreeUnpublished(start.value(), size_class);
  }
  root = co_await directory_.Refresh(operation, 0);
  co_return root.status();
}

void Index::UseView(const View& view) {
  if (view.directory != directory_.number()) {
    directory_.Use(view.directory);
    cache_.Clear();
    // The worker that has moved the subtable gives its old place back, if a directory entry named
    // that; if none did, only a look for what is lost finds it.
    std::erase_if(in_doubt_, [&](const auto& one) { return view.IsLeaving(one.second); });
  }
  mover_.UseView(view);
  std::erase_if(spares_, [&](const Spare& spare) {
    if (!view.IsLeaving(spare.start)) return false;
    Retire(spare.start);
    return true;
  });
}

}  // namespace onetrip
