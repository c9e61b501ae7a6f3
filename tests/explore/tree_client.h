// TreeClient: one client of TreeScope. It runs the commands of its program through a worker of its
// own, and writes behind each what it has taken and given back to memory that no other client
// reads.
#ifndef ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_
#define ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
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
  Task<void> WriteLedger(bool failed);
  static void AddBit(uint64_t addr, SizeClass size, std::map<uint32_t, uint64_t>* words);
  static void Add(RemoteAddr at, uint64_t word, RoundTripPtr& round_trip);

  const TreeScope& scope_;
  const size_t client_;
  ExploreFabric& fabric_;
  std::vector<Note>& notes_;
  TreeWorker worker_;
  std::string broken_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_TREE_CLIENT_H_
