// Inputs of tree_fuzz: whole trees, and changes of them.
#ifndef ONETRIP_TESTS_FUZZ_TREE_SEEDS_H_
#define ONETRIP_TESTS_FUZZ_TREE_SEEDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/tree/tree.h"

namespace onetrip {

inline constexpr TreeLimits kTreeFuzzLimits{64, 120, 120, 400};

// The page of that number, in the order in which pages were placed.
inline PageRef TreeFuzzPage(size_t number, uint32_t bytes) {
  PageRef page;
  page.addr = GlobalAddr((number + 1) * kObjectAlignBytes);
  page.size_class = SizeClass::For(bytes);
  return page;
}

// Behind two bytes that count it.
inline std::string TreeFuzzText(std::string_view bytes) {
  std::string text{static_cast<char>(bytes.size() & 0xff), static_cast<char>(bytes.size() >> 8)};
  return text.append(bytes);
}

// A list and a sorted order of `leaves` leaves each, and changes, of six bytes each and their
// leaves' text.
inline std::string TreeSeed(int leaves, int changes) {
  std::vector<std::vector<NewLeaf>> orders(2);
  for (int i = 0; i < leaves; ++i) {
    orders[0].push_back({std::string(30, 'l'), 3, ""});
    orders[1].push_back({std::string(40, 's'), 2, std::to_string(1000 + i)});
  }
  Tree tree("header", std::move(orders), kTreeFuzzLimits);
  tree.Balance();
  std::vector<PageRef> places;
  for (const uint32_t bytes : tree.NewPageBytes()) {
    places.push_back(TreeFuzzPage(places.size(), bytes));
  }
  std::string pages;
  tree.Place(places, [&](const PageRef&, std::string_view bytes) { pages += TreeFuzzText(bytes); });
  std::string seed(1, static_cast<char>(changes));
  for (int i = 0; i < changes; ++i) {
    const auto place = static_cast<char>(i * 37);
    seed += {static_cast<char>(i), place, 0, static_cast<char>(i % 4), 2, 8};
    seed += "new text";
  }
  return seed + TreeFuzzText(tree.EncodeRoot()) + pages;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_FUZZ_TREE_SEEDS_H_
