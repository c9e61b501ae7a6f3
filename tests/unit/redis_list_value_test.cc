// Lists as packed collections against a deque of strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/list_value.h"

namespace onetrip {
namespace {

using Model = std::deque<std::string>;

std::vector<std::string> ElementsOf(std::string_view value, ListEnd from) {
  std::vector<std::string> elements;
  ListCursor cursor(ListValue(value).entries(), from);
  std::string_view element;
  while (cursor.Next(&element)) elements.emplace_back(element);
  return elements;
}

// In both directions, and as the header says.
void ExpectEqual(std::string_view value, const Model& model) {
  std::vector<std::string> expected(model.begin(), model.end());
  EXPECT_EQ(ListValue(value).size(), model.size());
  EXPECT_EQ(ElementsOf(value, ListEnd::kHead), expected);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(ElementsOf(value, ListEnd::kTail), expected);
}

class RandomLists {
 public:
  explicit RandomLists(uint64_t seed) : rng_(seed) {}

  // Changes the list and the model alike.
  void Step() {
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        return Push();
      case 2:
        return Pop();
      case 3:
        return Replace();
      case 4:
        return Insert();
      case 5:
        return RemoveEqual();
      case 6:
        return Trim();
      default:
        return Rotate();
    }
  }
  void Check() const { ExpectEqual(list_, model_); }

 private:
  ListEnd AnyEnd() { return rng_.Below(2) == 0 ? ListEnd::kHead : ListEnd::kTail; }
  std::string AnyElement() {
    static constexpr size_t kSizes[] = {0, 1, 2, 126, 127, 128, 129, 200, 16382, 16384};
    if (rng_.Below(3) > 0) return std::to_string(rng_.Below(4));
    return std::string(kSizes[rng_.Below(std::size(kSizes))], static_cast<char>(rng_.Below(256)));
  }

  void Push() {
    std::vector<std::string> elements;
    for (uint64_t left = rng_.Below(9); left > 0; --left) elements.push_back(AnyElement());
    const std::vector<std::string_view> views(elements.begin(), elements.end());
    const ListEnd end = AnyEnd();
    list_ = ListValue(list_).Push(end, views);
    for (const std::string& element : elements) {
      end == ListEnd::kHead ? model_.push_front(element) : model_.push_back(element);
    }
  }

  void Pop() {
    const ListEnd end = AnyEnd();
    const uint64_t most = rng_.Below(4);
    const ListValue list(list_);
    const ListStretch taken = list.AtEnd(end, most);
    EXPECT_EQ(taken.elements, std::min<uint64_t>(most, model_.size()));
    ListCursor cursor(list.EntriesOf(taken), end);
    for (uint64_t i = 0; i < taken.elements; ++i) {
      std::string_view element;
      EXPECT_TRUE(cursor.Next(&element));
      EXPECT_EQ(element, end == ListEnd::kHead ? model_.front() : model_.back());
      end == ListEnd::kHead ? model_.pop_front() : model_.pop_back();
    }
    std::string_view element;
    EXPECT_FALSE(cursor.Next(&element));
    list_ = list.Without(taken);
  }

  void Replace() {
    if (model_.empty()) return;
    const uint64_t index = rng_.Below(model_.size());
    const std::string element = AnyElement();
    const std::string_view view = element;
    const ListValue list(list_);
    list_ = list.Replace(list.Find(index, 1), {&view, 1});
    model_[index] = element;
  }

  void Insert() {
    const std::string pivot = AnyElement();
    const ListEnd from = AnyEnd();
    const ListValue list(list_);
    ListStretch found;
    size_t at = 0;
    if (from == ListEnd::kHead) {
      at = static_cast<size_t>(std::find(model_.begin(), model_.end(), pivot) - model_.begin());
    } else {
      const auto behind = std::find(model_.rbegin(), model_.rend(), pivot);
      at =
          behind == model_.rend() ? model_.size() : static_cast<size_t>(model_.rend() - behind) - 1;
    }
    ASSERT_EQ(list.FindEqual(pivot, from, &found), at < model_.size());
    if (at == model_.size()) return;
    const std::string_view view = "inserted";
    list_ = list.Replace({found.end, found.end, 0}, {&view, 1});
    model_.insert(model_.begin() + static_cast<ptrdiff_t>(at) + 1, std::string(view));
  }

  void RemoveEqual() {
    const std::string element = AnyElement();
    const ListEnd from = AnyEnd();
    const uint64_t most = rng_.Below(3) == 0 ? ListValue::kAll : 1 + rng_.Below(3);
    uint64_t removed = 0;
    const std::string left = ListValue(list_).WithoutEqual(element, from, most, &removed);
    if (from == ListEnd::kTail) std::reverse(model_.begin(), model_.end());
    uint64_t expected = 0;
    for (auto at = model_.begin(); at != model_.end() && expected < most;) {
      if (*at == element) {
        at = model_.erase(at);
        ++expected;
      } else {
        ++at;
      }
    }
    if (from == ListEnd::kTail) std::reverse(model_.begin(), model_.end());
    EXPECT_EQ(removed, expected);
    EXPECT_EQ(left.empty(), removed == 0);
    if (removed > 0) list_ = left;
  }

  void Trim() {
    if (model_.size() < 100) return;
    const uint64_t first = rng_.Below(model_.size());
    const uint64_t elements = rng_.Below(model_.size() - first + 1);
    const ListValue list(list_);
    list_ = list.Only(list.Find(first, elements));
    model_.erase(model_.begin(), model_.begin() + static_cast<ptrdiff_t>(first));
    model_.resize(elements);
  }

  void Rotate() {
    if (model_.empty()) return;
    const ListEnd from = AnyEnd();
    list_ = ListValue(list_).Rotate(from);
    if (from == ListEnd::kHead) {
      model_.push_back(model_.front());
      model_.pop_front();
    } else {
      model_.push_front(model_.back());
      model_.pop_back();
    }
  }

  Rng rng_;
  std::string list_;
  Model model_;
};

TEST(ListValueTest, RandomChangesAreThoseOfADeque) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomLists lists(seed);
    for (int i = 0; i < 300; ++i) {
      lists.Step();
      lists.Check();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ListValueTest, AnyStretchIsFound) {
  Model model;
  std::string value;
  for (int i = 0; i < 9; ++i) {
    model.push_back(std::to_string(i * i * i));
    const std::string_view element = model.back();
    value = ListValue(value).Push(ListEnd::kTail, {&element, 1});
  }
  const ListValue list(value);
  for (uint64_t first = 0; first <= model.size(); ++first) {
    for (uint64_t elements = 0; first + elements <= model.size(); ++elements) {
      const std::string part = list.Only(list.Find(first, elements));
      const auto begin = model.begin() + static_cast<ptrdiff_t>(first);
      ExpectEqual(part, Model(begin, begin + static_cast<ptrdiff_t>(elements)));
    }
  }
}

TEST(ListValueTest, WhatIsNoListHasNoElements) {
  for (const std::string& value : {std::string(), std::string("x"), std::string(30, '\xff')}) {
    const ListValue list(value);
    EXPECT_EQ(list.size(), 0U);
    EXPECT_EQ(list.AtEnd(ListEnd::kTail, 5).elements, 0U);
    const std::string_view element = "e";
    ExpectEqual(list.Push(ListEnd::kHead, {&element, 1}), {"e"});
  }
}

// The header says more than is there, entries end anywhere, sizes lie.
TEST(ListValueTest, ADamagedListIsNeverReadBeyondItsEnd) {
  Rng rng(5);
  for (int i = 0; i < 3000; ++i) {
    std::string value = PackedHeaderBytes({.elements = static_cast<uint32_t>(rng.Below(20))});
    for (int entry = 0; entry < 6; ++entry) {
      AppendPackedEntry(std::string(rng.Below(20), 'x'), &value);
    }
    value[kPackedHeaderBytes + rng.Below(value.size() - kPackedHeaderBytes)] =
        static_cast<char>(rng.Below(256));
    value.resize(kPackedHeaderBytes + rng.Below(value.size() - kPackedHeaderBytes));
    // Exactly as long, for a sanitizer.
    const std::vector<char> exact(value.begin(), value.end());
    const ListValue list({exact.data(), exact.size()});
    const std::string_view element = "x";
    uint64_t removed = 0;
    for (const ListEnd end : {ListEnd::kHead, ListEnd::kTail}) {
      (void)list.Without(list.AtEnd(end, rng.Below(9)));
      (void)list.WithoutEqual(element, end, rng.Below(9), &removed);
      (void)list.Rotate(end);
      ListStretch found;
      if (list.FindEqual(element, end, &found)) (void)list.Without(found);
    }
    const uint64_t first = rng.Below(list.size() + 1);
    (void)list.Only(list.Find(first, rng.Below(list.size() - first + 1)));
  }
}

}  // namespace
}  // namespace onetrip
