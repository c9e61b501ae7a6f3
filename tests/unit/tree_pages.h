// Pages of trees in a map, in place of memory nodes, and a reader of trees that goes its own way.
#ifndef ONETRIP_TESTS_UNIT_TREE_PAGES_H_
#define ONETRIP_TESTS_UNIT_TREE_PAGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client_core/layout/size_class.h"
#include "client_core/tree/page.h"
#include "client_core/tree/tree.h"

// For functions that return an empty string, or the condition that does not hold.
#define TREE_EXPECT(condition)                                                         \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      return std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition; \
    }                                                                                  \
  } while (false)

namespace onetrip {

using Texts = std::vector<std::string>;

// An element: a byte that tells the length of its text, and the text, which is also its key.
inline void AppendElement(std::string_view text, std::string* leaf) {
  leaf->push_back(static_cast<char>(text.size()));
  leaf->append(text);
}

inline bool AppendElementsOf(std::string_view leaf, Texts* texts) {
  while (!leaf.empty()) {
    const size_t bytes = static_cast<uint8_t>(leaf.front());
    if (1 + bytes > leaf.size()) return false;
    texts->emplace_back(leaf.substr(1, bytes));
    leaf.remove_prefix(1 + bytes);
  }
  return true;
}

// Leaves of about the same size with these elements.
inline std::vector<NewLeaf> LeavesOf(const Texts& texts, bool has_keys, uint32_t leaf_bytes) {
  size_t left = 0;
  for (const std::string& text : texts) left += 1 + text.size();
  std::vector<NewLeaf> leaves;
  for (size_t i = 0; i < texts.size();) {
    const size_t parts = (left + leaf_bytes - 1) / leaf_bytes;
    const size_t wanted = (left + parts - 1) / parts;
    NewLeaf leaf;
    if (has_keys && i > 0) leaf.first = ShortestBetween(texts[i - 1], texts[i]);
    for (; i < texts.size(); ++i) {
      const size_t bytes = leaf.bytes.size() + 1 + texts[i].size();
      if (leaf.elements > 0 && (bytes > wanted || bytes > leaf_bytes)) break;
      AppendElement(texts[i], &leaf.bytes);
      ++leaf.elements;
    }
    left -= leaf.bytes.size();
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

// All pages that were ever written and not freed.
class PageMemory {
 public:
  PageRef Allocate(uint32_t bytes) {
    PageRef page;
    page.addr = GlobalAddr(next_addr_);
    page.size_class = SizeClass::For(bytes);
    next_addr_ += kObjectAlignBytes;
    return page;
  }
  void Write(const PageRef& page, std::string_view bytes) {
    pages_[page.addr.bits()] = std::string(bytes);
  }
  void Free(const PageRef& page) { pages_.erase(page.addr.bits()); }
  [[nodiscard]] const std::string* Find(const PageRef& page) const {
    const auto found = pages_.find(page.addr.bits());
    return found == pages_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<uint64_t, std::string>& pages() const { return pages_; }
  std::map<uint64_t, std::string>& pages() { return pages_; }

 private:
  std::map<uint64_t, std::string> pages_;
  uint64_t next_addr_ = kObjectAlignBytes;
};

// The pages of a memory that were loaded.
class LoadedPages : public PageSource {
 public:
  const std::string_view* Find(const PageRef& page) const override {
    const auto found = pages_.find(page.addr.bits());
    return found == pages_.end() ? nullptr : &found->second;
  }
  // False: it was loaded, or is not there.
  bool Load(const PageMemory& memory, const PageRef& page) {
    const std::string* bytes = memory.Find(page);
    return bytes != nullptr && pages_.emplace(page.addr.bits(), *bytes).second;
  }
  [[nodiscard]] size_t size() const { return pages_.size(); }

 private:
  std::unordered_map<uint64_t, std::string_view> pages_;
};

// Gives a changed tree its places; its root.
inline std::string PlaceTree(Tree* tree, PageMemory* memory, std::vector<PageRef>* placed) {
  tree->Balance();
  std::vector<PageRef> places;
  for (const uint32_t bytes : tree->NewPageBytes()) places.push_back(memory->Allocate(bytes));
  tree->Place(places, [&](const PageRef& page, std::string_view bytes) {
    memory->Write(page, bytes);
    if (placed != nullptr) placed->push_back(page);
  });
  return tree->EncodeRoot();
}

// Everything in a tree, read without Tree.
struct TreeContents {
  std::string header;
  std::vector<Texts> orders;
  std::set<uint64_t> pages;
  uint64_t leaves = 0;
  uint64_t leaf_bytes = 0;
  uint64_t inner_pages = 0;
  uint64_t inner_bytes = 0;
  int height = 0;  // the highest order's
};

class TreeCheck {
 public:
  TreeCheck(const PageMemory& memory, const TreeLimits& limits, std::vector<bool> has_keys)
      : memory_(memory), limits_(limits), has_keys_(std::move(has_keys)) {}

  std::string Read(std::string_view root_bytes, TreeContents* contents) {
    TreeRoot root;
    TREE_EXPECT(LoadTreeRoot(root_bytes, &root));
    TREE_EXPECT(root.tops.size() == has_keys_.size());
    contents_ = contents;
    contents->header = root.header;
    contents->orders.resize(root.tops.size());
    for (order_ = 0; order_ < root.tops.size(); ++order_) {
      const TreeTop& top = root.tops[order_];
      size_t bytes = 0;
      for (const PageName& name : top.names) bytes += PageNameBytes(name);
      TREE_EXPECT(top.names.size() <= 1 || top.height == kTreeHeightMax ||
                  bytes <= limits_.root_bytes / root.tops.size());
      contents->height = std::max<int>(contents->height, top.height);
      std::string error = ReadList(top.names, top.height, true, "");
      if (!error.empty()) return error;
    }
    return "";
  }

 private:
  std::string ReadList(const std::vector<PageName>& names, int level, bool is_front,
                       std::string_view last) {
    for (size_t i = 0; i < names.size(); ++i) {
      const PageName& name = names[i];
      const std::string* bytes = memory_.Find(name.page);
      TREE_EXPECT(bytes != nullptr && bytes->size() == name.page.bytes);
      TREE_EXPECT(PageChecksum(*bytes) == name.page.checksum);
      TREE_EXPECT(contents_->pages.insert(name.page.addr.bits()).second);
      const std::string_view next = i + 1 < names.size() ? names[i + 1].first : last;
      const bool is_first = is_front && i == 0;
      std::string error = level == 0 ? ReadLeaf(name, *bytes, is_first, next)
                                     : ReadInner(name, *bytes, level, is_first, next);
      if (!error.empty()) return error;
    }
    return "";
  }

  std::string ReadInner(const PageName& name, std::string_view bytes, int level, bool is_first,
                        std::string_view last) {
    TreeTop top;
    TREE_EXPECT(LoadInnerPage(bytes, &top.names) && !top.names.empty());
    TREE_EXPECT(ElementsIn(top) == name.elements && LeafBytesIn(top) == name.leaf_bytes);
    TREE_EXPECT(bytes.size() <= limits_.inner_bytes || top.names.size() <= 2);
    TREE_EXPECT(is_first || top.names.front().first == name.first);
    ++contents_->inner_pages;
    contents_->inner_bytes += bytes.size();
    return ReadList(top.names, level - 1, is_first, last);
  }

  std::string ReadLeaf(const PageName& name, std::string_view bytes, bool is_first,
                       std::string_view last) {
    Texts texts;
    TREE_EXPECT(AppendElementsOf(bytes, &texts) && texts.size() == name.elements);
    TREE_EXPECT(name.leaf_bytes == bytes.size());
    TREE_EXPECT(bytes.size() <= limits_.leaf_bytes || texts.size() == 1);
    ++contents_->leaves;
    contents_->leaf_bytes += bytes.size();
    for (const std::string& text : texts) {
      if (!has_keys_[order_]) continue;
      TREE_EXPECT(is_first || text >= name.first);
      TREE_EXPECT(last.empty() || text < last);
    }
    Texts& all = contents_->orders[order_];
    all.insert(all.end(), texts.begin(), texts.end());
    return "";
  }

  const PageMemory& memory_;
  const TreeLimits& limits_;
  const std::vector<bool> has_keys_;
  TreeContents* contents_ = nullptr;
  size_t order_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_TREE_PAGES_H_
