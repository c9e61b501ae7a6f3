// Values that are trees, as those see them who want a value's bytes, or a few of its pages.
#include <algorithm>
#include <cstring>
#include <vector>

#include "client_core/kv/forms/extents.h"

namespace onetrip {
namespace {

constexpr Status kNotATree(StatusCode::kCorrupt, "a root of a collection is damaged");

// The leaves of a collection that hold some of its bytes, and where those begin in them. They are
// told one behind the other.
struct LeavesOf {
  std::vector<PageRef> leaves;
  uint64_t begin = 0;
  uint64_t bytes = 0;

  LeavesOf(uint64_t header_bytes, ValuePart wanted) : at(header_bytes), part(wanted) {}
  void Tell(const PageName& name) {
    const uint64_t behind = at + name.page.bytes;
    if (behind > part.offset && at < part.offset + part.bytes) {
      if (leaves.empty()) begin = at;
      leaves.push_back(name.page);
      bytes += name.page.bytes;
    }
    at = behind;
  }

  uint64_t at;
  const ValuePart part;
};

}  // namespace

Task<Result<bool>> Extents::ReadTreeBy(TreeReader& reader, Operation& operation,
                                       const TreeRoot& root, ReadResult* result) {
  LoadedPages pages(core_.pages);
  while (true) {
    Tree tree(root, pages, core_.context.options.tree);
    reader.Read(result->record_, tree);
    if (tree.is_damaged()) co_return kNotATree;
    if (tree.missing().empty()) co_return true;
    if (!pages.HasRoomFor(tree.missing(), tree.limits().loaded_bytes)) co_return false;
    const Status status = co_await pages_.Load(operation, tree.missing(), &pages);
    if (!status.ok()) co_return status;
  }
}

Task<Status> Extents::ReadFromTree(Operation& operation, ValueRange range, Room* room,
                                   ReadResult* result) {
  TreeRoot root;
  result->found_ = false;
  const std::string_view value = result->record_.value;
  if (!LoadTreeRoot(value, &root) || root.tops.empty()) co_return kNotATree;
  const std::string_view header = TreeHeader(value);
  result->record_.value = {};
  result->record_.value_bytes = header.size() + LeafBytesIn(root.tops[0]);
  if (range.reader != nullptr) {
    const Result<bool> read = co_await ReadTreeBy(*range.reader, operation, root, result);
    result->found_ = read.ok() && *read;
    if (!read.ok() || *read) co_return read.status();
  }
  const ValuePart part = PartOf(result->record_.value_bytes, range.unless_large ? kNoValue : range);
  if (part.offset + part.bytes <= header.size()) {
    // The root is among the bytes that the result keeps.
    result->record_.value = header.substr(part.offset, part.bytes);
    result->found_ = true;
    co_return Status::Ok();
  }
  LeavesOf of(header.size(), part);
  // The first order's leaves, joined, are the value.
  Status status = co_await pages_.ForEach(operation, root, /*orders=*/1,
                                          [&of](const PageName& name, bool is_leaf) {
                                            if (is_leaf) of.Tell(name);
                                          });
  if (!status.ok()) co_return status;
  const uint64_t begin = part.offset < header.size() ? 0 : of.begin;
  const uint64_t before = of.begin - begin;  // the header, or nothing
  status = TakeLarge(before + of.bytes, room, result);
  if (!status.ok()) co_return status;
  std::byte* into = result->large_->memory.start();
  std::memcpy(into, header.data(), before);
  status = co_await pages_.ReadLeaves(operation, of.leaves, into + before);
  if (!status.ok()) co_return status;
  const char* bytes = reinterpret_cast<const char*>(into) + (part.offset - begin);
  result->record_.value = {bytes, part.bytes};
  result->found_ = true;
  co_return Status::Ok();
}

}  // namespace onetrip
