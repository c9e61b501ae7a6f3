// ByteTree: a collection of bytes, each an element, as the store's tests make and change them. It
// is kept as a value while it is short, and as a tree beyond that.
#ifndef ONETRIP_TESTS_SUPPORT_BYTE_TREE_H_
#define ONETRIP_TESTS_SUPPORT_BYTE_TREE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/store/store.h"

namespace onetrip {

// Takes `erased` bytes out at `at`, as far as the leaf there has them, and puts `text` there.
class ByteTreeEdit final : public Mutation {
 public:
  ByteTreeEdit(const TreeLimits& limits, uint64_t at, uint64_t erased, std::string text)
      : limits_(limits), at_(at), erased_(erased), text_(std::move(text)) {}

  // The bytes that the last Apply() has taken out.
  [[nodiscard]] uint64_t erased() const { return done_; }

  Change Apply(const RecordView* current) override {
    done_ = 0;
    if (current != nullptr && current->tree != nullptr) return ApplyTo(*current->tree);
    std::string all(current == nullptr ? std::string_view() : current->value);
    Edit(std::min<uint64_t>(at_, all.size()), &all);
    return Write(std::move(all));
  }
  [[nodiscard]] bool takes_trees() const override { return true; }

 private:
  void Edit(uint64_t at, std::string* bytes) {
    done_ = std::min<uint64_t>(erased_, bytes->size() - at);
    bytes->replace(at, done_, text_);
  }
  std::vector<NewLeaf> Cut(std::string_view bytes) const {
    std::vector<NewLeaf> leaves;
    const size_t count = (bytes.size() + limits_.leaf_bytes - 1) / limits_.leaf_bytes;
    for (size_t i = 0; i < count; ++i) {
      const size_t begin = bytes.size() * i / count;
      const size_t end = bytes.size() * (i + 1) / count;
      leaves.push_back({std::string(bytes.substr(begin, end - begin)), end - begin, ""});
    }
    return leaves;
  }
  Change Write(std::string all) {
    packed_ = std::move(all);
    if (packed_.empty()) return Change::Delete();
    NewRecord record{.head = packed_};
    if (packed_.size() > limits_.packed_bytes) {
      tree_.emplace("", std::vector<std::vector<NewLeaf>>{Cut(packed_)}, limits_);
      record.tree = &*tree_;
    }
    return Change::Write(record);
  }
  Change ApplyTo(Tree& tree) {
    LeafPlace place;
    const uint64_t at = std::min(at_, tree.elements(0));
    if (!tree.Seek(0, std::min(at, tree.elements(0) - 1), &place)) return Change::Keep();
    std::string bytes(place.bytes);
    Edit(at - place.before, &bytes);
    const uint64_t left = tree.elements(0) - done_ + text_.size();
    if (!tree.Replace(0, place, Cut(bytes))) return Change::Keep();
    if (left == 0) return Change::Delete();
    if (left < limits_.packed_bytes / 4) return Pack(tree);
    NewRecord record;
    record.tree = &tree;
    return Change::Write(record);
  }
  Change Pack(Tree& tree) {
    if (!tree.NeedAll(/*inner_only=*/false)) return Change::Keep();
    std::string all;
    LeafPlace place;
    for (bool more = tree.First(0, &place); more; more = tree.Next(0, &place)) all += place.bytes;
    return Write(std::move(all));
  }

  const TreeLimits limits_;
  const uint64_t at_;
  const uint64_t erased_;
  const std::string text_;
  uint64_t done_ = 0;
  std::string packed_;
  std::optional<Tree> tree_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_BYTE_TREE_H_
