#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_core/control/asked_requests.h"
#include "client_core/control/control.pb.h"

namespace onetrip {
namespace {

class AskedRequestsTest : public testing::Test {
 protected:
  void Ask(uint32_t worker, uint64_t deadline_ns = AskedRequests::kNever) {
    control::Request request;
    request.mutable_leave_worker()->set_worker(worker);
    asked_.Add(
        request, deadline_ns,
        [this, worker](Status status, const std::string& reason, const control::Reply* reply) {
          answers_.push_back(std::to_string(worker) + " " +
                             std::string(StatusCodeName(status.code())) +
                             (reply != nullptr ? " with a reply" : " " + reason));
        });
  }
  void Send() {
    asked_.TakeUnsent([this](const control::FromMember& message) {
      ids_.push_back(message.request().id());
      workers_.push_back(message.request().leave_worker().worker());
    });
  }
  void Reply(uint64_t id, StatusCode code = StatusCode::kOk) {
    control::Reply reply;
    reply.set_id(id);
    reply.set_code(static_cast<uint32_t>(code));
    asked_.OnReply(reply);
  }

  AskedRequests asked_;
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> workers_;
  std::vector<std::string> answers_;
};

using Texts = std::vector<std::string>;

TEST_F(AskedRequestsTest, EachIsSentOnceInItsOrder) {
  Ask(7);
  Ask(5);
  Send();
  Ask(6);
  Send();
  EXPECT_EQ(workers_, (std::vector<uint32_t>{7, 5, 6}));
}

TEST_F(AskedRequestsTest, AReplyAnswersTheOneThatHasItsNumber) {
  Ask(7);
  Ask(5);
  Send();
  Reply(ids_[1]);
  Reply(ids_[1]);
  Reply(99);
  Reply(ids_[0], StatusCode::kUnavailable);
  const std::string name(StatusCodeName(StatusCode::kUnavailable));
  EXPECT_EQ(answers_, (Texts{"5 " + std::string(StatusCodeName(StatusCode::kOk)) + " with a reply",
                             "7 " + name + " the master says: " + name}));
  EXPECT_EQ(asked_.size(), 0U);
}

TEST_F(AskedRequestsTest, WhenTimeIsOverOnlyTheOneThatWasSentMayHaveBeenDone) {
  Ask(7, 100);
  Send();
  Ask(5, 90);
  Ask(6);
  EXPECT_EQ(asked_.NextTimeNs(), 90U);
  asked_.OnTime(89, "here", "gone");
  EXPECT_TRUE(answers_.empty());
  asked_.OnTime(100, "here", "gone");
  EXPECT_EQ(answers_, (Texts{"7 " + std::string(StatusCodeName(StatusCode::kUnknownOutcome)) +
                                 " the master at here did not answer in time",
                             "5 " + std::string(StatusCodeName(StatusCode::kUnavailable)) +
                                 " the master at here is away: gone"}));
  EXPECT_EQ(asked_.NextTimeNs(), AskedRequests::kNever);
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(AskedRequestsTest, ABrokenStreamFailsOnlyTheOnesThatWereSentOnIt) {
  Ask(7);
  Send();
  Ask(5);
  asked_.Fail(/*sent_only=*/true, "broke");
  EXPECT_EQ(answers_,
            (Texts{"7 " + std::string(StatusCodeName(StatusCode::kUnknownOutcome)) + " broke"}));
  Send();
  EXPECT_EQ(workers_, (std::vector<uint32_t>{7, 5})) << "what waits goes on the next stream";
  Ask(6);
  asked_.Fail(/*sent_only=*/false, "over");
  EXPECT_EQ(answers_.size(), 3U);
  EXPECT_EQ(answers_[1], "5 " + std::string(StatusCodeName(StatusCode::kUnknownOutcome)) + " over");
  EXPECT_EQ(answers_[2], "6 " + std::string(StatusCodeName(StatusCode::kUnavailable)) + " over");
}

TEST_F(AskedRequestsTest, AnAnswerMayAskAgain) {
  control::Request request;
  asked_.Add(request, 10, [this](Status, const std::string&, const control::Reply*) { Ask(8); });
  asked_.OnTime(10, "here", "");
  EXPECT_EQ(asked_.size(), 1U);
  Send();
  EXPECT_EQ(workers_, (std::vector<uint32_t>{8}));
}

}  // namespace
}  // namespace onetrip
