// PageCache: the pages of collections' trees that a worker has used last. A page is what its name
// says, address and checksum, so that none has to be taken out for being old. Private to kv/; the
// worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_PAGE_CACHE_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_PAGE_CACHE_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "client_core/base/planted_bug.h"
#include "client_core/tree/page.h"

namespace onetrip {

class PageCache {
 public:
  explicit PageCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // The page's bytes; null: it is not here.
  std::shared_ptr<const std::string> Find(const PageRef& page) {
    const auto found = by_addr_.find(page.addr.bits());
    if (found == by_addr_.end()) return nullptr;
    const bool is_it = found->second->checksum == page.checksum || Planted(Bug::kPageCachedByAddr);
    if (!is_it) return nullptr;
    pages_.splice(pages_.begin(), pages_, found->second);
    return found->second->bytes;
  }
  // A copy of its bytes, in place of the page that was at its address before.
  void Keep(const PageRef& page, std::string_view bytes) {
    if (bytes.size() > bytes_max_ / 16) return;
    const auto [found, is_new] = by_addr_.try_emplace(page.addr.bits());
    if (!is_new) Drop(found->second);
    pages_.push_front(
        {page.addr.bits(), page.checksum, std::make_shared<const std::string>(bytes)});
    found->second = pages_.begin();
    bytes_ += Cost(bytes.size());
    while (bytes_ > bytes_max_) {
      by_addr_.erase(pages_.back().addr);
      Drop(std::prev(pages_.end()));
    }
  }

 private:
  struct Page {
    uint64_t addr;
    uint64_t checksum;
    std::shared_ptr<const std::string> bytes;
  };
  static uint64_t Cost(size_t bytes) { return bytes + 128; }
  void Drop(std::list<Page>::iterator page) {
    bytes_ -= Cost(page->bytes->size());
    pages_.erase(page);
  }

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::list<Page> pages_;  // the one used last first
  absl::flat_hash_map<uint64_t, std::list<Page>::iterator> by_addr_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_PAGE_CACHE_H_
