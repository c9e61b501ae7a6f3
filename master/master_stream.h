// MasterService: the streams of the control plane on gRPC's callback interface, handed to the
// driver as MemberStreams. gRPC stays in the .cc.
#ifndef ONETRIP_MASTER_MASTER_STREAM_H_
#define ONETRIP_MASTER_MASTER_STREAM_H_

#include <cstddef>
#include <memory>

namespace onetrip {

class StreamEvents;

class MasterService {
 public:
  // `driver` outlives it, and has all streams. A stream whose unsent messages exceed either limit
  // is dropped.
  MasterService(StreamEvents& driver, size_t queue_messages_max, size_t queue_bytes_max);
  ~MasterService();

  // A grpc::Service*, for the server builder.
  [[nodiscard]] void* service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MASTER_STREAM_H_
