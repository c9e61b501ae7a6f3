// Roots and pages of trees: what comes back, and what is never believed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/layout/extent.h"
#include "client_core/tree/page.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

PageName SomeName(Rng* rng, bool is_leaf) {
  PageName name;
  name.page.size_class = SizeClass(static_cast<uint8_t>(rng->Below(SizeClass::kSizes)));
  name.page.addr = GlobalAddr(1 + rng->Below((1ULL << kAddrBits) - 1));
  name.page.checksum = rng->Next();
  name.page.bytes = static_cast<uint32_t>(
      1 + rng->Below(std::min<uint64_t>(name.page.size_class.bytes(), kPageBytesMax)));
  name.elements = 1 + (rng->Next() >> (12 + rng->Below(52)));
  name.leaf_bytes = is_leaf ? name.page.bytes : 1 + (rng->Next() >> (12 + rng->Below(52)));
  name.first.assign(rng->Below(rng->Below(10) == 0 ? 300 : 20), static_cast<char>(rng->Next()));
  return name;
}

bool IsSame(const PageName& a, const PageName& b) {
  return a.page == b.page && a.elements == b.elements && a.leaf_bytes == b.leaf_bytes &&
         a.first == b.first;
}

bool IsSame(const std::vector<PageName>& a, const std::vector<PageName>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const PageName& x, const PageName& y) { return IsSame(x, y); });
}

TreeRoot SomeRoot(uint64_t seed) {
  Rng rng(seed);
  TreeRoot root;
  root.header.assign(rng.Below(30), 'h');
  root.tops.resize(1 + rng.Below(kTreeTopsMax));
  for (TreeTop& top : root.tops) {
    size_t names = rng.Below(6);
    if (names > 0) top.height = static_cast<uint8_t>(rng.Below(kTreeHeightMax + 1));
    for (; names > 0; --names) top.names.push_back(SomeName(&rng, top.height == 0));
  }
  return root;
}

PageName OneName() {
  PageName name;
  name.page = {GlobalAddr(64), SizeClass(0), 50, 7};
  name.elements = 3;
  name.leaf_bytes = 50;
  name.first = "key";
  return name;
}

std::string PageOf(const PageName& name) {
  std::string page;
  AppendPageName(name, &page);
  return page;
}

bool IsInnerPage(std::string_view page) {
  std::vector<PageName> names;
  return LoadInnerPage(page, &names);
}

TEST(TreeRootTest, ComesBackAsItWas) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(Scaled(3000)); ++seed) {
    const TreeRoot root = SomeRoot(seed);
    const std::string value = EncodeTreeRoot(root);
    size_t bytes = TreeRootBytes(root.header.size(), root.tops.size());
    for (const TreeTop& top : root.tops) {
      for (const PageName& name : top.names) bytes += PageNameBytes(name);
    }
    ASSERT_EQ(value.size(), bytes);
    ASSERT_TRUE(IsTreeRoot(value));
    uint64_t leaf_bytes = 0;
    std::memcpy(&leaf_bytes, value.data() + 8, 8);
    ASSERT_EQ(leaf_bytes, LeafBytesIn(root.tops[0]));
    TreeRoot loaded;
    ASSERT_TRUE(LoadTreeRoot(value, &loaded)) << "seed " << seed;
    ASSERT_EQ(loaded.header, root.header);
    ASSERT_EQ(loaded.tops.size(), root.tops.size());
    for (size_t i = 0; i < root.tops.size(); ++i) {
      ASSERT_EQ(loaded.tops[i].height, root.tops[i].height);
      ASSERT_TRUE(IsSame(loaded.tops[i].names, root.tops[i].names)) << "seed " << seed;
    }
  }
}

TEST(TreeRootTest, IsNotAListOfExtents) {
  EXPECT_FALSE(IsTreeRoot(EncodeExtentList(PlanExtents(kMaxValueBytes, kExtentBytesMax))));
  EXPECT_FALSE(IsTreeRoot(""));
  ExtentList list;
  EXPECT_FALSE(LoadExtentList(EncodeTreeRoot(SomeRoot(1)), &list));
}

TEST(TreeRootTest, IsRefusedWhenCutOrLengthened) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const std::string value = EncodeTreeRoot(SomeRoot(seed));
    TreeRoot loaded;
    for (size_t bytes = 0; bytes < value.size(); ++bytes) {
      ASSERT_FALSE(LoadTreeRoot(std::string_view(value).substr(0, bytes), &loaded)) << bytes;
    }
    ASSERT_FALSE(LoadTreeRoot(value + '\0', &loaded));
    ASSERT_FALSE(LoadTreeRoot(value + PageOf(OneName()), &loaded));
  }
}

// Whatever is loaded is written again as it was: there is one way to write a root.
TEST(TreeRootTest, DamagedBytesAreRefusedOrAreAnotherRoot) {
  Rng rng(5);
  for (int i = 0; i < Scaled(100000); ++i) {
    std::string value = EncodeTreeRoot(SomeRoot(rng.Below(100)));
    value[rng.Below(value.size())] ^= static_cast<char>(1 << rng.Below(8));
    TreeRoot loaded;
    if (!LoadTreeRoot(value, &loaded)) continue;
    ASSERT_EQ(EncodeTreeRoot(loaded), value);
  }
}

TEST(TreeRootTest, RefusesWhatNoTreeHas) {
  const auto is_root = [](const TreeRoot& root) {
    TreeRoot loaded;
    return LoadTreeRoot(EncodeTreeRoot(root), &loaded);
  };
  TreeRoot root;
  root.tops.resize(1);
  EXPECT_TRUE(is_root(root));
  root.tops[0].height = 1;
  EXPECT_FALSE(is_root(root)) << "a level without pages";
  root.tops[0].names.push_back(OneName());
  EXPECT_TRUE(is_root(root));
  root.tops[0].height = kTreeHeightMax + 1;
  EXPECT_FALSE(is_root(root));
  root.tops[0].height = 0;
  EXPECT_TRUE(is_root(root));
  ++root.tops[0].names[0].leaf_bytes;
  EXPECT_FALSE(is_root(root)) << "a leaf of other bytes than it has";
  root.tops[0].height = 1;
  EXPECT_TRUE(is_root(root));

  std::string value = EncodeTreeRoot(root);
  TreeRoot loaded;
  value[8] ^= 1;
  EXPECT_FALSE(LoadTreeRoot(value, &loaded)) << "the sum of leaf bytes";
  value[8] ^= 1;
  for (const char orders : {0, 2, kTreeTopsMax + 1, 255}) {
    value[20] = orders;
    EXPECT_FALSE(LoadTreeRoot(value, &loaded));
  }
}

TEST(InnerPageTest, ComesBackAsItWas) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(Scaled(3000)); ++seed) {
    Rng rng(seed);
    std::vector<PageName> names;
    std::string page;
    size_t bytes = 0;
    for (uint64_t i = 1 + rng.Below(40); i > 0; --i) {
      names.push_back(SomeName(&rng, false));
      AppendPageName(names.back(), &page);
      bytes += PageNameBytes(names.back());
    }
    ASSERT_EQ(page.size(), bytes);
    std::vector<PageName> loaded;
    ASSERT_TRUE(LoadInnerPage(page, &loaded)) << "seed " << seed;
    ASSERT_TRUE(IsSame(loaded, names)) << "seed " << seed;
  }
}

TEST(InnerPageTest, BytesOfANameDoNotDependOnItsPlace) {
  PageName name = OneName();
  const size_t bytes = PageNameBytes(name);
  name.page.addr = GlobalAddr();
  name.page.size_class = SizeClass();
  EXPECT_EQ(PageNameBytes(name), bytes);
  EXPECT_EQ(PageOf(name).size(), bytes);
}

TEST(InnerPageTest, RefusesNamesOfNoPage) {
  EXPECT_TRUE(IsInnerPage(PageOf(OneName())));
  EXPECT_FALSE(IsInnerPage(""));
  const auto is_refused = [](void (*change)(PageName*)) {
    PageName name = OneName();
    change(&name);
    return !IsInnerPage(PageOf(name));
  };
  EXPECT_TRUE(is_refused([](PageName* name) { name->page.addr = GlobalAddr(); }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->page.size_class = SizeClass(); }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->page.size_class = SizeClass::ForRoot(50); }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->page.bytes = 0; }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->page.bytes = 65; }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->elements = 0; }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->leaf_bytes = 0; }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->elements = ~0ULL; }));
  EXPECT_TRUE(is_refused([](PageName* name) { name->leaf_bytes = 1ULL << 63; }));
  EXPECT_TRUE(is_refused([](PageName* name) {
    name->page.size_class = SizeClass(SizeClass::kSizes - 1);
    name->page.bytes = kPageBytesMax + 1;
  }));
  std::string page = PageOf(OneName());
  page[7] = 1;  // above the size class
  EXPECT_FALSE(IsInnerPage(page));
}

TEST(InnerPageTest, RefusesNumbersThatAreCutOrTooLong) {
  const std::string page = PageOf(OneName());
  const std::string words = page.substr(0, 16);
  const std::string rest = page.substr(17);  // behind the bytes, which take one byte
  using std::string_literals::operator""s;
  EXPECT_TRUE(IsInnerPage(words + "\x32"s + rest));
  EXPECT_FALSE(IsInnerPage(words + "\xb2\x00"s + rest)) << "longer than it has to be";
  EXPECT_FALSE(IsInnerPage(words + "\xb2\x80\x00"s + rest));
  EXPECT_FALSE(IsInnerPage(words + std::string(9, '\xff') + "\x01" + rest));
  EXPECT_FALSE(IsInnerPage(words + std::string(9, '\x80') + "\x02" + rest)) << "65 bits";
  EXPECT_FALSE(IsInnerPage(words + std::string(20, '\xff')));
  EXPECT_FALSE(IsInnerPage(words + "\x32"));
  std::string long_first = page;
  long_first[19] = 4;
  EXPECT_FALSE(IsInnerPage(long_first)) << "a first key that is longer than the rest";
}

TEST(InnerPageTest, SumsThatOverflowAreRefused) {
  PageName name = OneName();
  name.elements = 1ULL << 56;
  EXPECT_TRUE(IsInnerPage(PageOf(name)));
  EXPECT_FALSE(IsInnerPage(PageOf(name) + PageOf(OneName())));
}

TEST(ShortestBetweenTest, IsAboveOneAndNotAboveTheOther) {
  EXPECT_EQ(ShortestBetween("", "abc"), "a");
  EXPECT_EQ(ShortestBetween("ab", "abc"), "abc");
  EXPECT_EQ(ShortestBetween("abc", "b"), "b");
  EXPECT_EQ(ShortestBetween("abcx", "abd55"), "abd");
  EXPECT_EQ(ShortestBetween("\x7f", "\x80zz"), "\x80");
  Rng rng(3);
  for (int i = 0; i < Scaled(100000); ++i) {
    std::string texts[2];
    for (std::string& text : texts) {
      for (uint64_t bytes = rng.Below(6); bytes > 0; --bytes) {
        text.push_back("\x00\x01\x7f\xff"[rng.Below(4)]);
      }
    }
    if (texts[0] >= texts[1]) continue;
    const std::string between = ShortestBetween(texts[0], texts[1]);
    ASSERT_TRUE(texts[0] < between && between <= texts[1]);
    ASSERT_FALSE(texts[0] < between.substr(0, between.size() - 1));
  }
}

TEST(PageChecksumTest, TellsPagesApart) {
  EXPECT_EQ(PageChecksum("page"), PageChecksum(std::string("page")));
  EXPECT_NE(PageChecksum("page"), PageChecksum("pagf"));
  EXPECT_NE(PageChecksum(""), PageChecksum(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace onetrip
