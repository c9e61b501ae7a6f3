// Queue pairs on a real driver, without a fabric: what the device refuses, and to whom it matters.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "client_core/base/zeroed_memory.h"
#include "memnode/verbs_host.h"
#include "tests/verbs/verbs_world.h"

namespace onetrip {
namespace {

constexpr uint64_t kBytes = 1 << 16;

class VerbsQueuePairTest : public testing::Test {
 protected:
  struct Worker {
    std::unique_ptr<VerbsQueuePair> pair;
    TcpQueuePairReply target;
  };

  VerbsQueuePairTest() {
    std::string reason;
    auto host = VerbsHost::Start(TestDevice(), memory_.start(), kBytes, 1, &reason);
    Demand(host.ok(), reason);
    host_ = std::move(host.value());
    auto known = VerbsMemory::Register(TestDevice(), own_.start(), kBytes, VerbsMemory::Use::kLocal,
                                       &reason);
    Demand(known.ok(), reason);
    known_ = std::move(known.value());
    completions_ = ibv_create_cq(TestDevice().context(), 64, nullptr, nullptr, 0);
    Demand(completions_ != nullptr, "no completion queue");
  }
  ~VerbsQueuePairTest() override {
    one_ = {};
    other_ = {};
    EXPECT_EQ(ibv_destroy_cq(completions_), 0);
  }

  Worker Connect(uint32_t id) {
    std::string reason;
    auto pair =
        VerbsQueuePair::Make(TestDevice(), completions_, {.requests = 16}, 0, rng_, &reason);
    Demand(pair.ok(), reason);
    Worker worker{std::move(pair.value()), {}};
    const auto target = host_->Welcome(WorkerId{id}, worker.pair->address(), &reason);
    Demand(target.ok(), reason);
    worker.target = *target;
    Demand(worker.pair->Connect(worker.target.pair, &reason).ok(), reason);
    return worker;
  }

  // Posts one request on a word at `offset`, and waits for its end.
  ibv_wc_status Post(Worker& worker, ibv_wr_opcode opcode, uint64_t offset, uint32_t key) {
    ibv_sge place{reinterpret_cast<uint64_t>(own_.start()), sizeof(uint64_t), known_->local_key()};
    ibv_send_wr request{};
    request.opcode = opcode;
    request.sg_list = &place;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      request.wr.atomic.remote_addr = worker.target.base + offset;
      request.wr.atomic.rkey = key;
      request.wr.atomic.compare_add = 1;
    } else {
      request.wr.rdma.remote_addr = worker.target.base + offset;
      request.wr.rdma.rkey = key;
    }
    ibv_send_wr* bad = nullptr;
    if (worker.pair->Post(&request, &bad) != 0) return IBV_WC_GENERAL_ERR;
    ibv_wc done{};
    while (ibv_poll_cq(completions_, 1, &done) == 0) {
    }
    return done.status;
  }

  ZeroedMemory memory_{kBytes};
  ZeroedMemory own_{kBytes};
  Rng rng_{1};
  std::unique_ptr<VerbsHost> host_;
  std::unique_ptr<VerbsMemory> known_;
  ibv_cq* completions_ = nullptr;
  Worker one_;
  Worker other_;
};

TEST_F(VerbsQueuePairTest, WhatTheDeviceRefusesEndsThatWorkersPairAndNoOther) {
  other_ = Connect(2);
  struct Case {
    const char* name;
    ibv_wr_opcode opcode;
    uint64_t offset;
    uint32_t key_mask;
    ibv_wc_status status;
  };
  for (const Case& c :
       {Case{"a wrong key", IBV_WR_RDMA_WRITE, 0, 0x5500, IBV_WC_REM_ACCESS_ERR},
        Case{"beyond the end", IBV_WR_RDMA_READ, kBytes - 4, 0, IBV_WC_REM_ACCESS_ERR}}) {
    one_ = Connect(1);
    EXPECT_EQ(Post(one_, IBV_WR_RDMA_WRITE, 0, one_.target.key), IBV_WC_SUCCESS) << c.name;
    EXPECT_EQ(Post(one_, c.opcode, c.offset, one_.target.key ^ c.key_mask), c.status) << c.name;
    EXPECT_EQ(Post(one_, IBV_WR_RDMA_WRITE, 0, one_.target.key), IBV_WC_WR_FLUSH_ERR) << c.name;
    EXPECT_EQ(Post(other_, IBV_WR_RDMA_READ, 0, other_.target.key), IBV_WC_SUCCESS) << c.name;
  }
}

TEST_F(VerbsQueuePairTest, AKeyIsWorthNothingToAnotherWorker) {
  ASSERT_TRUE(TestDevice().has_windows());
  one_ = Connect(1);
  other_ = Connect(2);
  EXPECT_NE(one_.target.key, other_.target.key);
  EXPECT_EQ(Post(one_, IBV_WR_RDMA_WRITE, 0, one_.target.key), IBV_WC_SUCCESS);
  EXPECT_EQ(Post(other_, IBV_WR_RDMA_WRITE, 0, one_.target.key), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(Post(one_, IBV_WR_RDMA_WRITE, 0, one_.target.key), IBV_WC_SUCCESS);
}

TEST_F(VerbsQueuePairTest, AnEndThatMakesNoSenseIsRefused) {
  std::string reason;
  TcpQueuePair peer;
  EXPECT_FALSE(host_->Welcome(WorkerId{1}, peer, &reason).ok());
  EXPECT_EQ(reason, "the other end of a queue pair makes no sense");
}

}  // namespace
}  // namespace onetrip
