// FlushQueue: connections of one worker with something to send or to end. The worker's thread.
#ifndef ONETRIP_FRONTEND_FLUSH_QUEUE_H_
#define ONETRIP_FRONTEND_FLUSH_QUEUE_H_

#include <vector>

namespace onetrip {

class Connection;

// In the order in which they asked.
class FlushQueue {
 public:
  // Once, however often it asks before the next flush.
  void Add(Connection* connection);
  // Forgets a connection that goes away.
  void Remove(Connection* connection);
  // Flushes all of them. Called once per turn.
  void FlushAll();

 private:
  std::vector<Connection*> waiting_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_FLUSH_QUEUE_H_
