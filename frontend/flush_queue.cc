#include "frontend/flush_queue.h"

#include <utility>

#include "frontend/connection.h"

namespace onetrip {

void FlushQueue::Add(Connection* connection) {
  if (std::exchange(connection->flush_queued_, true)) return;
  waiting_.push_back(connection);
}

void FlushQueue::Remove(Connection* connection) {
  if (connection->flush_queued_) std::erase(waiting_, connection);
}

void FlushQueue::FlushAll() {
  // A flush runs nothing else, so no connection comes or goes meanwhile.
  for (Connection* connection : waiting_) {
    connection->flush_queued_ = false;
    connection->Flush();
  }
  waiting_.clear();
}

}  // namespace onetrip
