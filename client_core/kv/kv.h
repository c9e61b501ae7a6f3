// The store that agents use, and what it implements.
#ifndef ONETRIP_CLIENT_CORE_KV_KV_H_
#define ONETRIP_CLIENT_CORE_KV_KV_H_

#include "client_core/index/index_metrics.h"
#include "client_core/kv/slot_store.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/store/store.h"

#endif  // ONETRIP_CLIENT_CORE_KV_KV_H_
