// Writes the inputs that tests/fuzz/corpus keeps for the targets of the control plane and of
// images: fuzz_seeds DIR. Every message in them is one of a real encoder; the bytes around them are
// as the comment at the head of each target says. To be run again when a message has changed:
//   cmake --build --preset asan-ubsan --target fuzz_seeds && build/asan-ubsan/bin/fuzz_seeds
//   tests/fuzz/corpus
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client_core/control/kept_state.h"
#include "client_core/fabric/control.h"
#include "client_core/layout/shm_wire.h"
#include "master/state_copies.h"
#include "tests/fuzz/master_checks.h"
#include "tests/fuzz/tree_seeds.h"

namespace onetrip {
namespace {

class Seeds {
 public:
  explicit Seeds(std::string directory) : directory_(std::move(directory)) {}

  void Write(const std::string& target, const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = std::filesystem::path(directory_) / target / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    CHECK(file.good());
  }

 private:
  const std::string directory_;
};

std::string Two(size_t number) {
  return {static_cast<char>(number & 0xff), static_cast<char>(number >> 8 & 0xff)};
}

// Behind two bytes that count it.
std::string Counted(const std::string& bytes) { return Two(bytes.size()) + bytes; }

// A cluster of three memory nodes and two agents, with everything that its members do at once.
class Cluster {
 public:
  Cluster() {
    master_.on_send = [this](StreamId stream, const MasterMessage& message) {
      if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
        answers_.emplace_back(stream, ViewHeldMessage{hold->epoch});
      } else if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
        answers_.emplace_back(stream, ViewInForceMessage{committed->view->epoch});
      }
    };
    CHECK(master_.Start(CoordinatorOptions(), DurableState()));
    for (uint32_t node = 0; node < 3; ++node) {
      const StreamId stream = Attend(MemberKind::kMemoryNode);
      Say(stream,
          RequestMessage{1, JoinNodeRequest{.bytes = 3 * kRegionBytes, .incarnation = 100 + node}});
      const NodeAddress address{"10.0.0.1", 7000, "/run/onetrip/node.sock", "host"};
      Say(stream, RequestMessage{2, ServeNodeRequest{address}});
    }
    for (int agent = 0; agent < 2; ++agent) {
      Say(Attend(MemberKind::kAgent), RequestMessage{1, JoinWorkerRequest()});
    }
  }

  StreamId Attend(MemberKind kind) {
    MemberHello hello;
    hello.kind = kind;
    hello.pid = 4711;
    hello.host = "host";
    hello.version = "0.1.0";
    CHECK(master_.coordinator().Attend(master_.now_us(), ++streams_, hello).welcome);
    master_.Settle();
    return streams_;
  }
  void Say(StreamId stream, const MemberMessage& message) {
    master_.coordinator().OnMessage(master_.now_us(), stream, message);
    master_.Settle();
    for (size_t i = 0; i < answers_.size(); ++i) {
      const auto [to, answer] = answers_[i];
      master_.coordinator().OnMessage(master_.now_us(), to, answer);
      master_.Settle();
    }
    answers_.clear();
  }
  FuzzMaster& master() { return master_; }

 private:
  FuzzMaster master_;
  StreamId streams_ = 0;
  std::vector<std::pair<StreamId, MemberMessage>> answers_;
};

std::string ViewBytes(const View& view) {
  control::View message;
  EncodeView(view, &message);
  return message.SerializeAsString();
}

void WriteViews(const Seeds& seeds) {
  seeds.Write("view_fuzz", "empty", ViewBytes(View()));
  Cluster cluster;
  const View formed = cluster.master().coordinator().view();
  seeds.Write("view_fuzz", "formed", ViewBytes(formed));
  View missing = formed;
  missing.regions[1].missing = 1;
  missing.nodes[missing.regions[1].nodes[2].value].out = true;
  missing.records_only = true;
  seeds.Write("view_fuzz", "missing", ViewBytes(missing));
}

control::Recalled CopyOf(const DurableState& state) {
  StateCopies copies(state);
  control::FromMaster message;
  copies.FillWhole(&message);
  KeptState kept;
  kept.Add(message.keep_state());
  control::Recalled recalled;
  kept.Fill(&recalled);
  recalled.set_incarnation(100);
  recalled.set_mark(40);
  recalled.set_next_worker(3);
  return recalled;
}

void WriteStates(const Seeds& seeds) {
  Cluster cluster;
  control::Recalled copy = CopyOf(cluster.master().disk());
  seeds.Write("state_file_fuzz", "file", '\0' + EncodeStateFile(copy));
  seeds.Write("state_file_fuzz", "body", '\1' + copy.SerializeAsString());
  const std::string head = std::string("\2\7") + Two(100) + std::string("\3\0\0\0", 4);
  seeds.Write("state_file_fuzz", "whole", head + Counted(copy.changes(0)));
  DurableChange seat;
  seat.cluster = cluster.master().disk().cluster;
  seat.seats[1] = std::nullopt;
  seat.former[2] = true;
  seat.lives[7] = 3;
  seeds.Write("state_file_fuzz", "changed",
              head + Counted(copy.changes(0)) + Counted(EncodeChange(seat)));
}

class Talk {
 public:
  explicit Talk(char start) : bytes_(1, start) {}
  Talk& Say(char stream, const control::FromMember& message) {
    bytes_ += std::string{'\0', stream} + Counted(message.SerializeAsString());
    return *this;
  }
  Talk& Prove(char stream, const control::FromMember& message) {
    bytes_ += std::string{'\1', stream} + Counted(message.SerializeAsString());
    return *this;
  }
  template <typename Fill>
  Talk& Ask(char stream, Fill fill) {
    control::FromMember message;
    message.mutable_request()->set_id(++asked_);
    fill(message.mutable_request());
    return Say(stream, message);
  }
  Talk& Connect() { return Add({'\2', '\0'}); }
  Talk& Attend(char kind, char member) { return Add({'\3', '\0', kind, member}); }
  Talk& Offer(char stream) { return Add({'\4', stream}); }
  Talk& Close(char stream) { return Add({'\5', stream}); }
  Talk& Pass(size_t ms) { return Add(std::string{'\6', '\0'} + Two(ms)); }
  Talk& Restart() { return Add({'\7', '\0'}); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Talk& Add(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  std::string bytes_;
  uint64_t asked_ = 10;
};

// Streams 0 to 2 are memory nodes, 3 and 4 agents.
constexpr char kFormed = 3;

void WriteHandshakes(const Seeds& seeds) {
  control::FromMember hello;
  hello.mutable_hello()->set_protocol(5);
  hello.mutable_hello()->set_role(control::ROLE_AGENT);
  hello.mutable_hello()->set_nonce(std::string(32, 'n'));
  hello.mutable_hello()->set_engine("swarm");
  hello.mutable_hello()->set_host("host");
  control::FromMember proof;
  proof.mutable_proof()->set_mac(std::string(32, 'm'));
  Talk stranger('\0');
  stranger.Connect().Say('\0', hello).Say('\0', proof);
  seeds.Write("control_message_fuzz", "stranger", stranger.bytes());
  Talk proved(kFormed);
  proved.Connect().Prove('\5', hello).Prove('\5', proof);
  proved.Ask('\5', [](control::Request* ask) { ask->mutable_join_worker(); });
  proved.Ask('\5', [](control::Request* ask) { ask->mutable_get_status(); });
  proved.Ask('\5', [](control::Request* ask) { ask->mutable_leave(); });
  seeds.Write("control_message_fuzz", "proved", proved.bytes());
}

void WriteTalks(const Seeds& seeds) {
  Talk agents(kFormed);
  agents.Ask('\3', [](control::Request* ask) { ask->mutable_flush()->set_all(true); });
  agents.Ask('\4', [](control::Request* ask) { ask->mutable_flush()->set_database(2); });
  agents.Ask('\3', [](control::Request* ask) { ask->mutable_swap()->set_second(1); });
  agents.Ask('\3', [](control::Request* ask) { ask->mutable_leave_worker()->set_worker(1); });
  control::FromMember renew;
  renew.mutable_renew()->set_sequence(1);
  renew.mutable_renew()->mutable_report()->set_workers(1);
  agents.Say('\3', renew).Pass(900).Close('\4').Pass(900).Pass(3000);
  seeds.Write("control_message_fuzz", "agents", agents.bytes());

  Talk nodes(kFormed);
  control::FromMember unreached;
  control::Unreached::Node* const one = unreached.mutable_unreached()->add_nodes();
  one->set_node(1);
  one->set_worker(1);
  one->set_for_ms(5000);
  nodes.Say('\3', unreached).Pass(2000);
  nodes.Ask('\0', [](control::Request* ask) { ask->mutable_note_mark()->set_mark(9); });
  nodes.Close('\2').Pass(1000).Attend('\1', '\0').Offer('\4').Pass(500);
  nodes.Attend('\1', '\0').Ask('\5', [](control::Request* ask) {
    control::JoinNode* const join = ask->mutable_join_node();
    join->set_bytes(3 * kRegionBytes);
    join->set_incarnation(102);
    join->set_adopted(true);
    join->set_owner_cluster(FuzzMaster::kFreshCluster);
    join->set_owner_node(2);
    join->set_damage("bytes are missing");
    join->set_mark(3);
    join->set_told(3);
    join->set_epoch(2);
    join->set_next_worker(3);
  });
  nodes.Ask('\5', [](control::Request* ask) {
    ask->mutable_serve_node()->mutable_address()->set_shm_path("/run/onetrip/node.sock");
  });
  seeds.Write("control_message_fuzz", "nodes", nodes.Pass(12'000).bytes());

  Talk moves(kFormed);
  moves.Attend('\1', '\0').Offer('\5').Attend('\2', '\0');
  moves.Ask('\6', [](control::Request* ask) {
    ask->mutable_move_regions()->set_node(3);
    ask->mutable_move_regions()->set_wish(control::MoveRegions::SHARE);
  });
  moves.Pass(100).Pass(100).Pass(100);
  moves.Ask('\6', [](control::Request* ask) {
    ask->mutable_move_regions()->set_node(0);
    ask->mutable_move_regions()->set_wish(control::MoveRegions::DRAIN);
  });
  moves.Pass(100).Pass(100).Pass(100).Restart().Attend('\0', '\4').Pass(5000);
  seeds.Write("control_message_fuzz", "moves", moves.bytes());
}

// Members that do not do as they are told at once: what they say by hand.
void WriteAnswers(const Seeds& seeds) {
  Talk talk('\1');
  control::FromMember held;
  held.mutable_view_held()->set_epoch(4);
  control::FromMember in_force;
  in_force.mutable_view_in_force()->set_epoch(4);
  control::FromMember fenced;
  fenced.mutable_fenced()->set_id(1);
  fenced.mutable_fenced()->set_done(true);
  control::FromMember repaired;
  repaired.mutable_repaired()->set_id(1);
  repaired.mutable_repaired()->set_reason("no worker can do it");
  control::FromMember reached;
  reached.mutable_reached()->set_id(1);
  talk.Say('\3', in_force).Say('\4', in_force).Say('\3', held).Say('\4', held);
  talk.Say('\0', fenced).Say('\3', repaired).Say('\3', reached).Pass(3000);
  seeds.Write("control_message_fuzz", "answers", talk.bytes());
}

// Images are made by a real node when the target starts; an input is what is changed in one.
void WriteImages(const Seeds& seeds) {
  const auto write = [&](const char* name, std::string head, const std::string& changes) {
    head += static_cast<char>(changes.empty() ? 0 : 3);
    seeds.Write("memory_image_fuzz", name, head + changes + std::string("\0\0\5\0\5\0", 6));
  };
  const std::string sums("\2\4", 2);
  write("clean", std::string(2, '\0'), "");
  write("in_use", std::string("\1\0", 2), "");
  write("another_boot", std::string("\1\1", 2), "");
  write("damaged", std::string("\2\0", 2), "");
  write("damaged_accepted", std::string("\2\4", 2), "");
  write("forming", std::string("\3\0", 2), "");
  // A version that knew no age, and an entry of the block table, with checksums that are right.
  write("version_2", std::string(2, '\0'), std::string("\0\0\x08\0\1\2", 6) + sums);
  write("block_table", std::string(2, '\0'),
        std::string("\0\3\x48\0\x08\5\0\0\0\0\0\x2d\1", 13) + sums);
  write("header_lost", std::string(2, '\0'),
        std::string("\0\0\0\0\4none", 9) + std::string("\5\5"));
  write("cut", std::string("\1\0", 2), std::string("\1\0\0\x30\0", 5) + std::string("\5\5"));
}

// Frames are what an agent's encoder makes of these: the target fills in what a member knows.
void WriteFrames(const Seeds& seeds) {
  const std::string connect("\0\0", 2);
  ShmHello hello{.epoch = 9, .worker = 7};
  std::string bytes = connect + std::string("\2\0", 2);
  bytes.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  hello.worker = 8;
  std::string worker("\3\0", 2);
  worker.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  const auto ask = [](uint8_t kind, uint64_t block) {
    const ShmControl control{.kind = kind, .size_class = 4, .owner = 7, .block = block, .from = 7};
    std::string event("\4\0", 2);
    return event.append(reinterpret_cast<const char*>(&control), sizeof(control));
  };
  const std::string asks = ask(0, 0) + ask(1, 5 * kBlockBytes) + ask(3, 3 * kBlockBytes) +
                           ask(2, 3 * kBlockBytes) + ask(4, 0);
  const std::string detach("\5\0", 2);
  const std::string close("\6\0", 2);
  seeds.Write("shm_frame_fuzz", "agent", bytes + worker + asks + detach);
  seeds.Write("shm_frame_fuzz", "two", bytes + connect + worker + asks + close + detach);
  seeds.Write("shm_frame_fuzz", "fenced",
              bytes + std::string("\x08\0\7", 3) + worker + std::string("\x09\0\x20", 3) + worker +
                  std::string("\x0a\1", 2) + asks);
  seeds.Write("shm_frame_fuzz", "stranger",
              connect + std::string("\1\0\x09no frames", 12) + std::string("\7\0\1x", 4) + close);
}

// A node's messages to an agent that attaches, asks twice and brings a second worker.
void WriteSegments(const Seeds& seeds) {
  const auto frame = [](char word, char how, const auto& said) {
    std::string event{word, how};
    return event.append(reinterpret_cast<const char*>(&said), sizeof(said));
  };
  const std::string greeting("\1\0", 2);
  const std::string welcome = greeting + frame('\2', '\5', ShmVerdict{.incarnation = 9});
  const std::string reply = frame('\3', '\4', ShmReply{.block = 3 * kBlockBytes});
  const std::string worker = frame('\2', '\4', ShmVerdict{.epoch = 3});
  const auto last = static_cast<uint8_t>(ControlReply::kLastOutcome);
  const std::string opened = frame('\3', '\4', ShmReply{.outcome = last, .block = 3 * kBlockBytes});
  seeds.Write("shm_segment_fuzz", "node", welcome + reply + reply + worker);
  seeds.Write("shm_segment_fuzz", "opened", welcome + opened + opened + worker);
  seeds.Write("shm_segment_fuzz", "refused",
              greeting + frame('\2', '\4', ShmVerdict{.refusal = 9}));
  seeds.Write("shm_segment_fuzz", "lost", welcome + reply + std::string("\0\4\7no more", 10));
  seeds.Write("shm_segment_fuzz", "no_memory",
              greeting + frame('\2', '\6', ShmVerdict{.memory_bytes = 4096}));
}

void WriteTrees(const Seeds& seeds) {
  seeds.Write("tree_fuzz", "empty", TreeSeed(0, 0));
  seeds.Write("tree_fuzz", "leaves", TreeSeed(5, 1));
  seeds.Write("tree_fuzz", "levels", TreeSeed(40, 2));
  seeds.Write("tree_fuzz", "many", TreeSeed(200, 12));
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("fuzz_seeds DIR\n", stderr);
    return 1;
  }
  const onetrip::Seeds seeds(argv[1]);
  onetrip::WriteViews(seeds);
  onetrip::WriteStates(seeds);
  onetrip::WriteHandshakes(seeds);
  onetrip::WriteTalks(seeds);
  onetrip::WriteAnswers(seeds);
  onetrip::WriteImages(seeds);
  onetrip::WriteFrames(seeds);
  onetrip::WriteSegments(seeds);
  onetrip::WriteTrees(seeds);
  return 0;
}
