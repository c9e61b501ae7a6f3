// AllocatorBlocks: what an Allocator keeps of its blocks, and of what is on its way to somebody
// else.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

// A base that has types alone.
struct AllocatorBlocks {
  struct Block {
    GlobalAddr start;
    SizeClass size_class;
    uint32_t objects = 0;
    std::vector<uint16_t> free;  // indices of free objects, last in first out
#ifndef NDEBUG
    std::vector<bool> is_free;  // by index: what is in `free`, and once
#endif
    uint32_t list = 0;               // which of partial_
    uint32_t list_position = 0;      // there, while free is not empty
    bool queued_for_return = false;  // in wholly_free_
    bool sweeping = false;           // its bitmap is being read; it is not returned meanwhile
    bool kept = false;               // never opened: see KeepBlockOf
    bool looked_at = false;          // acquired for nothing but an account
    bool closing = false;            // to be opened: in no list, nothing is allocated there
    bool emptying = false;           // what lives there is moved: likewise
    bool leaving = false;            // its region is given up: likewise
    uint64_t stuck_until_ns = 0;     // it could not be emptied: it is not chosen again before
    uint32_t clearing = 0;           // of its objects are in to_clear_, or were a moment ago
    // Of buffers, by index: free or not, what its lock word says means nothing. Empty: of none.
    std::vector<bool> stale_lock;
    // By index, while there is an account.
    std::vector<bool> suspect;
  };
  struct Retired {
    GlobalAddr addr;
    SizeClass size_class;
    uint64_t epoch;
    uint64_t unlinked;  // the epoch of that
  };
  struct ForeignFree {
    GlobalAddr word;  // of the bitmap
    uint64_t bit;
  };
  // Of which a backup has not answered, and what it was sent may arrive yet: the primary, whose
  // owner would use the object anew, hears of it afterwards.
  struct LateFree {
    ForeignFree free;
    RegionPlacement told;
  };
  // Bits that were found in a bitmap of this worker's own, and may still be there.
  struct Uncollected {
    GlobalAddr word;
    uint64_t bits;
  };

  // A block that waits for those who may hold something of it.
  struct Closing {
    GlobalAddr start;
    uint64_t generation;
    uint64_t epoch;
  };
  // A block, or a span, as memory nodes know it.
  struct Granted {
    GlobalAddr start;
    SizeClass size_class;
  };
  // One that is no longer this worker's, as far as it is concerned, and has yet to be open.
  struct Opening {
    GlobalAddr start;
    SizeClass size_class;
    bool asked_primary = false;  // and did not hear of it
  };
  // One that has yet to be free. Its primary has not heard of that.
  struct Returning {
    GlobalAddr start;
    SizeClass size_class;
    NodeId primary;
  };
  struct Emptying {
    GlobalAddr start;
    uint64_t until_ns;
  };
  struct FreeObject {
    GlobalAddr block;
    uint16_t index;
  };
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_
