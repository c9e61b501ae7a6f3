// RebuildServer: sits at the master's address for as long as its state is being rebuilt, and asks
// every member that comes what it keeps. Members come by themselves: they look for their master.
//
// Nothing is promised to them: each is told to come again once it has answered. The handshake is
// the master's, so that both sides have proved that they know the cluster's secret.
#ifndef ONETRIP_MASTER_REBUILD_SERVER_H_
#define ONETRIP_MASTER_REBUILD_SERVER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "master/admission.h"
#include "master/master_driver.h"
#include "master/rebuild.h"

namespace onetrip {

class StreamServer;

class RebuildServer final : public StreamEvents {
 public:
  // `rebuild` has what files say already.
  static Result<std::unique_ptr<RebuildServer>> Start(const std::string& listen, Secret secret,
                                                      Rebuild rebuild, std::string* reason);
  // Ends all streams.
  ~RebuildServer() override;

  // The answers that there are by now.
  [[nodiscard]] Rebuild Collected();

  StreamId Opened(std::shared_ptr<MemberStream> stream) override;
  bool Said(StreamId stream, std::unique_ptr<control::FromMember> message) override;
  void Closed(StreamId stream) override;
  void Gone(StreamId stream) override;

 private:
  struct Entry {
    std::shared_ptr<MemberStream> stream;
    std::unique_ptr<Admission> admission;
    bool proved = false;
  };

  RebuildServer(Secret secret, Rebuild rebuild);
  void Post(std::function<void()> task);
  void Run();
  void OnSaid(StreamId id, const control::FromMember& message);
  void OnProved(Entry& entry);
  void End(StreamId id, const std::string& why, bool refuse);

  const Secret secret_;
  std::unique_ptr<StreamServer> server_;
  std::map<StreamId, Entry> streams_;  // the thread's

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_, like the rest
  Rebuild rebuild_;
  StreamId next_stream_ = 1;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_REBUILD_SERVER_H_
