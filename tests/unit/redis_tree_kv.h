// TreeKv: a store in which collections are trees, held in memory beside the packed values that the
// store below has.
//
// Pages are there once they were asked for. A command that is run on this and one that is run on
// packed values must have the same outcome; each write checks the tree that it gets.
#ifndef ONETRIP_TESTS_UNIT_REDIS_TREE_KV_H_
#define ONETRIP_TESTS_UNIT_REDIS_TREE_KV_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/store/forwarding_store.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/packed.h"

namespace onetrip {

// The pages of one tree.
class TestPages final : public PageSource {
 public:
  const std::string_view* Find(const PageRef& page) const override {
    const auto found = loaded_.find(page.addr.bits());
    return found == loaded_.end() ? nullptr : &found->second;
  }
  void Load(const std::vector<PageRef>& pages) {
    for (const PageRef& page : pages) {
      loads_ += loaded_.emplace(page.addr.bits(), stored_.at(page.addr.bits())).second ? 1 : 0;
    }
    ++rounds_;
  }
  // Gives the new pages of a tree their places, and frees those that it has dropped.
  void Write(Tree* tree) {
    tree->Balance();
    std::vector<PageRef> places;
    for (const uint32_t bytes : tree->NewPageBytes()) {
      PageRef place;
      place.size_class = SizeClass::For(bytes);
      place.addr = GlobalAddr(1, kObjectAlignBytes * ++last_);
      places.push_back(place);
    }
    writes_ += places.size();
    tree->Place(places, [this](const PageRef& page, std::string_view bytes) {
      EXPECT_TRUE(stored_.emplace(page.addr.bits(), bytes).second);
    });
    for (const PageRef& page : tree->dropped()) {
      EXPECT_EQ(stored_.erase(page.addr.bits()), 1U);
    }
    root_ = tree->EncodeRoot();
  }
  void Forget() { loaded_.clear(); }

  [[nodiscard]] TreeRoot root() const {
    TreeRoot root;
    EXPECT_TRUE(LoadTreeRoot(root_, &root));
    return root;
  }
  [[nodiscard]] size_t pages() const { return stored_.size(); }
  // Counted from the first write on.
  [[nodiscard]] uint64_t loads() const { return loads_; }
  [[nodiscard]] uint64_t rounds() const { return rounds_; }
  [[nodiscard]] uint64_t writes() const { return writes_; }

 private:
  std::map<uint64_t, std::string> stored_;
  std::map<uint64_t, std::string_view> loaded_;
  std::string root_;
  uint64_t last_ = 0;
  uint64_t loads_ = 0;
  uint64_t rounds_ = 0;
  uint64_t writes_ = 0;
};

// Small ones, so that trees are high.
inline constexpr TreeLimits kTinyLimits{
    .leaf_bytes = 64, .inner_bytes = 80, .root_bytes = 100, .packed_bytes = 128};
inline constexpr TreeLimits kNoTrees{.packed_bytes = UINT32_MAX};

class TreeKv final : public ForwardingKv {
 public:
  TreeKv(Kv& store, const TreeLimits& limits) : ForwardingKv(store), limits_(limits) {}

  [[nodiscard]] const TreeLimits& tree_limits() const override { return limits_; }
  // The pages of a key's tree; null: it has none.
  [[nodiscard]] TestPages* PagesOf(std::string_view key) {
    const auto found = trees_.find(std::string(key));
    return found == trees_.end() ? nullptr : &found->second;
  }

  Task<Status> Get(Key key, ReadResult* result) override {
    return GetPart(key, kWholeValue, result);
  }
  // The time that its clients see from then on.
  void set_now_ms(uint64_t now_ms) { now_ms_ = now_ms; }
  [[nodiscard]] uint64_t NowMs() const override { return now_ms_ > 0 ? now_ms_ : store_.NowMs(); }
  bool GetFast(Key /*key*/, ReadResult* /*result*/) override { return false; }
  Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) override {
    TestPages* const pages = PagesOf(key.bytes);
    if (range.reader == nullptr || pages == nullptr) {
      range.reader = nullptr;
      co_return co_await store_.GetPart(key, range, result);
    }
    const Status status = co_await store_.GetPart(key, kNoValue, result);
    EXPECT_TRUE(status.ok() && result->found() && result->record().value.empty());
    pages->Forget();
    for (int rounds = 0;; ++rounds) {
      EXPECT_LT(rounds, 100);
      Tree tree(pages->root(), *pages, limits_);
      range.reader->Read(result->record(), tree);
      EXPECT_FALSE(tree.is_damaged() || tree.changed());
      if (tree.missing().empty()) break;
      pages->Load(tree.missing());
    }
    co_return status;
  }
  Task<Status> Set(Key key, NewRecord record) override {
    trees_.erase(std::string(key.bytes));
    co_return co_await store_.Set(key, record);
  }
  Task<Status> Delete(Key key, bool* existed) override {
    trees_.erase(std::string(key.bytes));
    co_return co_await store_.Delete(key, existed);
  }
  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    OnTree on_tree(*this, std::string(key.bytes), mutation);
    co_return co_await store_.ReadModifyWrite(key, on_tree);
  }

 private:
  // Shows a mutation the tree in place of the value, and writes what becomes of it.
  class OnTree final : public Mutation {
   public:
    OnTree(TreeKv& kv, std::string key, Mutation& mutation)
        : kv_(kv), key_(std::move(key)), mutation_(mutation) {
      TestPages* const pages = kv_.PagesOf(key_);
      if (pages == nullptr) return;
      pages->Forget();
      before_ = *pages;
    }

    Change Apply(const RecordView* current) override {
      // It may not be the first call.
      if (before_ && current != nullptr) {
        kv_.trees_.insert_or_assign(key_, *before_);
      } else {
        kv_.trees_.erase(key_);
      }
      TestPages* const pages = kv_.PagesOf(key_);
      if (pages == nullptr || !mutation_.takes_trees()) {
        return Finish(mutation_.Apply(current), nullptr);
      }
      for (int rounds = 0;; ++rounds) {
        EXPECT_LT(rounds, 100);
        Tree tree(pages->root(), *pages, kv_.limits_);
        RecordView view = *current;
        view.value = {};
        view.tree = &tree;
        const Change change = mutation_.Apply(&view);
        EXPECT_FALSE(tree.is_damaged());
        if (tree.missing().empty()) return Finish(change, &tree);
        pages->Load(tree.missing());
      }
    }

   private:
    Change Finish(Change change, Tree* seen) {
      if (change.kind == Change::Kind::kDelete) kv_.trees_.erase(key_);
      if (change.kind == Change::Kind::kKeep) {
        EXPECT_FALSE(seen != nullptr && seen->changed());
      }
      if (change.kind != Change::Kind::kWrite) return change;
      Tree* const tree = std::exchange(change.record.tree, nullptr);
      if (tree != seen || tree == nullptr) kv_.trees_.erase(key_);
      if (tree == nullptr) return change;
      // A new one; the bytes that come with it are those of its leaves.
      TestPages& pages = kv_.trees_[key_];
      pages.Write(tree);
      pages.Forget();
      packed_ = Joined(pages, static_cast<ValueType>(change.record.type));
      change.record.head = packed_;
      return change;
    }

    std::string Joined(TestPages& pages, ValueType type) {
      std::string packed;
      for (bool done = false; !done;) {
        Tree tree(pages.root(), pages, kv_.limits_);
        done = JoinLeaves(tree, &packed);
        EXPECT_FALSE(tree.is_damaged());
        size_t reachable = 0;
        if (done) tree.ForEachPage([&](const PageName&, bool) { ++reachable; });
        if (done) {
          EXPECT_EQ(reachable, pages.pages());
        }
        if (done && type != ValueType::kStream) {
          EXPECT_EQ(PackedSize(packed), tree.elements(0));
        }
        pages.Load(tree.missing());
      }
      return packed;
    }

    TreeKv& kv_;
    const std::string key_;
    Mutation& mutation_;
    std::optional<TestPages> before_;
    std::string packed_;
  };

  const TreeLimits limits_;
  uint64_t now_ms_ = 0;
  std::map<std::string, TestPages> trees_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_REDIS_TREE_KV_H_
