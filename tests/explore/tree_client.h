// TreeClient: one client of TreeScope. It runs the commands of its program through a worker of its
// own, and writes behind each what it has taken and given back to memory that no other client
// reads.
#ifndef ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_
#define ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/coro/task.h"
#include "client_core/fabric/round_trip.h"
#include "client_core/layout/size_class.h"
#include "tests/explore/scope.h"
#include "tests/explore/tree_worker.h"

namespace onetrip {

class TreeScope;

class TreeClient final : public ExploredClient {
 public:
  // `scope` outlives it.
  TreeClient(const TreeScope& scope, const ClientEnvironment& environment);

  Task<bool> Open() override;
  Task<OpResult> Run(size_t op) override;

 private:
  // The reply to a command, and the rounds of maintenance beside it.
  Task<std::string> RunBeside(std::string_view command);
  Task<void> RunInto(std::string_view command, std::string* reply);
  // Takes note of pages that this client READs though it has read, and kept, what lay there.
  void Watch(RoundTrip& round_trip);
  Task<void> WriteLedger(bool failed);
  static void AddBit(uint64_t addr, SizeClass size, std::map<uint32_t, uint64_t>* words);
  static void Add(RemoteAddr at, uint64_t word, RoundTripPtr& round_trip);

  const TreeScope& scope_;
  const size_t client_;
  ExploreFabric& fabric_;
  std::vector<Note>& notes_;
  TreeWorker worker_;
  std::set<uint64_t> pages_read_;  // by offset
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_
