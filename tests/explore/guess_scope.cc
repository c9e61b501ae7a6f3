#include "tests/explore/guess_scope.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "tests/explore/explore_master.h"
#include "tests/explore/posted_round.h"

namespace onetrip {
namespace {

constexpr uint64_t kOps = 4;
constexpr uint32_t kValueBytes = 8;
constexpr int64_t kClusterUs = 1'000'000;
constexpr Ticks kBirth{TicksOfNs(kClusterUs * 1000).value - 10};

std::string NameOf(const GuessOptions& options) {
  std::string name = "guess ";
  for (size_t i = 0; i < options.programs.size(); ++i) {
    name += (i == 0 ? "" : "||") + std::string(options.programs[i]);
    if (options.skew_us[i] != 0) name += (options.skew_us[i] > 0 ? "+" : "-");
  }
  if (options.lanes == 1) name += " one lane";
  if (options.traits.has_max) name += " by MAX";
  if (!options.traits.reads_first) name += " reads late";
  if (options.in_place_bytes > 0) name += " in place";
  return options.widens ? name + " widens" : name;
}

std::vector<std::vector<ProgramOp>> ProgramsOf(const GuessOptions& options) {
  std::vector<std::vector<ProgramOp>> programs;
  for (const std::string_view program : options.programs) {
    CHECK(program.size() <= kOps);
    auto& ops = programs.emplace_back();
    for (const char kind : program) ops.push_back({kind, kind == 'R'});
  }
  return programs;
}

RegisterOptions OptionsOf(const GuessOptions& options) {
  RegisterOptions of_registers;
  if (options.widens) return of_registers;
  // As far away as the operation's deadline: never.
  of_registers.widen_first_ns = kOpTimeoutMs * 1'000'000;
  of_registers.widen_min_ns = of_registers.widen_first_ns;
  of_registers.widen_max_ns = of_registers.widen_first_ns;
  return of_registers;
}

class GuessClient final : public ExploredClient {
 public:
  GuessClient(const GuessScope& scope, const ClientEnvironment& environment)
      : scope_(scope),
        client_(environment.client),
        master_(scope.view()),
        hold_(environment.executor),
        context_(environment.executor, environment.fabric, master_, hold_,
                 {WorkerId{static_cast<uint32_t>(client_) + 1},
                  WorkerIndex{static_cast<uint16_t>(client_)}},
                 ExploreDataPathOptions()),
        offset_us_(kClusterUs + scope.options().skew_us[client_]),
        clock_(environment.executor.clock(), offset_us_),
        safe_guess_(context_, clock_, OptionsOf(scope.options())),
        handle_(scope.ref(), clock_) {}

  Task<OpResult> Run(size_t op) override {
    return scope_.programs()[client_][op].kind == 'R' ? Read() : Write(op);
  }

 private:
  static OpResult Broken(const char* what) { return {OpResult::Kind::kBroken, 0, what}; }
  static OpResult Done(uint64_t value) { return {OpResult::Kind::kDone, value, ""}; }

  Task<OpResult> Read() {
    RegisterOperation operation;
    const Result<ReadOutcome> outcome = co_await safe_guess_.Read(operation, handle_);
    if (!outcome.ok()) co_return Broken(outcome.status().message());
    const ReadOutcome& read = outcome.value();
    // SWARM C.2.
    if (read.iterations > 2 * scope_.writers() + 1) {
      co_return Broken("a read took more iterations than 2 n + 1");
    }
    if (read.stalls > 0) co_return Broken("a read could not lock one guess twice");
    if (read.end == RegisterEnd::kEmpty) co_return Done(0);
    if (read.end != RegisterEnd::kDone) co_return Broken("nobody seals");
    uint64_t value = 0;
    CHECK(read.tuple.value.bytes.size() == sizeof(value));
    std::memcpy(&value, read.tuple.value.bytes.data(), sizeof(value));
    co_return Done(value);
  }

  Task<OpResult> Write(size_t op) {
    RegisterOperation operation;
    const uint64_t value = GuessScope::ValueOf(client_, op);
    const uint64_t first = 2 * (client_ * kOps + op);
    const WriteBuffers buffers{{ExploredRegister::Buffer(first), {}},
                               {ExploredRegister::Buffer(first + 1), {}}};
    WriteOutcome outcome;
    const Status status = co_await safe_guess_.Write(operation, handle_, buffers,
                                                     std::as_bytes(std::span(&value, 1)), &outcome);
    if (!status.ok()) co_return Broken(status.message());
    if (outcome.end != RegisterEnd::kDone) co_return Broken("nobody seals, no time has passed");
    co_return Done(0);
  }

  const GuessScope& scope_;
  const size_t client_;
  ExploreMaster master_;
  Quiesce hold_;
  WorkerContext context_;
  std::atomic<int64_t> offset_us_;
  GuessClock clock_;
  SafeGuess safe_guess_;
  RegisterHandle handle_;
};

}  // namespace

RegisterRef ExploredRegister::Ref(uint32_t lanes, uint32_t in_place_bytes) {
  RegisterRef ref;
  ref.addr = kAddr;
  ref.incarnation = 3;
  ref.birth = kBirth;
  ref.shape.lanes = lanes;
  ref.shape.in_place_bytes = in_place_bytes;
  ref.shape.buffer_bytes = kBufferHeaderBytes + kValueBytes;
  return ref;
}

uint64_t ExploredRegister::InitialWord(const RegisterRef& ref, uint64_t offset) {
  if (offset < kAddr.offset() || offset >= kAddr.offset() + kRegisterHeaderBytes) return 0;
  const RegisterHeader header{.log_word = 0,
                              .keyspace = 0,
                              .key_bytes = 0,
                              .lanes = static_cast<uint8_t>(ref.shape.lanes),
                              .buffer_class = 0,
                              .incarnation = ref.incarnation,
                              .birth_ticks = ref.birth.value,
                              .final_word = 0,
                              .seal = 0};
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(&header) + (offset - kAddr.offset()),
              sizeof(word));
  return word;
}

std::string ExploredRegister::CellName(const RegisterRef& ref, uint64_t offset) {
  if (offset >= kBuffers) {
    return "buffer " + std::to_string((offset - kBuffers) / kBufferStride) + " +" +
           std::to_string((offset - kBuffers) % kBufferStride);
  }
  const uint64_t at = offset - kAddr.offset();
  if (at == kSealOffset) return "seal";
  if (at >= ref.shape.in_place_offset()) {
    return "in place +" + std::to_string(at - ref.shape.in_place_offset());
  }
  if (at >= ref.shape.lanes_offset()) {
    return "lane " + std::to_string((at - ref.shape.lanes_offset()) / 8);
  }
  return "header +" + std::to_string(at);
}

GuessScope::GuessScope(GuessOptions options)
    : Scope(NameOf(options), 3, ProgramsOf(options), options.faults),
      options_(std::move(options)),
      view_(MakeExploreView(3)),
      ref_(ExploredRegister::Ref(options_.lanes, options_.in_place_bytes)) {}

uint32_t GuessScope::writers() const {
  uint32_t writers = 0;
  for (const std::string_view program : options_.programs) {
    writers += program.find('W') != std::string_view::npos ? 1 : 0;
  }
  return writers;
}

std::unique_ptr<ExploredClient> GuessScope::MakeClient(const ClientEnvironment& environment) const {
  return std::make_unique<GuessClient>(*this, environment);
}

// Clients that write back or rewrite look at lanes again, and a value is kept. That locks were
// taken and MAXes are done shows by what follows.
bool GuessScope::IsLookedAtLater(const PostedRound& round, const CellTable& cells) const {
  for (const auto& accesses : round.by_node) {
    for (const Access& access : accesses) {
      const uint64_t at = cells.cell(access.cell).at.offset - ref_.addr.offset();
      if (access.kind == FabricOpKind::kRead && at != kSealOffset) return true;
    }
  }
  return false;
}

Scope::SpecStep GuessScope::Apply(uint64_t value, size_t client, size_t op) const {
  if (programs()[client][op].kind == 'R') return {value, value};
  return {ValueOf(client, op), 0};
}

// Scanning lanes is legal only because a lane never decreases.
std::string GuessScope::OnAccess(const AppliedAccess& access, const MemoryView& /*memory*/) const {
  const uint64_t at = access.at.offset - ref_.addr.offset();
  const bool is_lane = at >= ref_.shape.lanes_offset() && at < ref_.shape.in_place_offset();
  return is_lane && access.after < access.before ? "a lane went back" : "";
}

bool GuessScope::FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                            uint64_t* value) const {
  if (crashed_nodes != 0) return false;
  MetaWord largest;
  int holders = 0;
  for (int replica = 0; replica < 3; ++replica) {
    MetaWord here;
    for (uint32_t lane = 0; lane < ref_.shape.lanes; ++lane) {
      const GlobalAddr at = ref_.addr + ref_.shape.lane_offset(lane);
      here = std::max(here, MetaWord(memory.Word(view_->Locate(at, replica))).AsGuess());
    }
    holders = here == largest ? holders + 1 : here > largest ? 1 : holders;
    largest = std::max(largest, here);
  }
  *value = 0;
  if (largest.is_empty()) return true;
  if (holders < 2) return false;
  // Where the bulk of its buffer is, the value is.
  for (int replica = 0; replica < 3; ++replica) {
    const GlobalAddr at = largest.buffer(ref_.addr) + kBufferHeaderBytes;
    *value = std::max(*value, memory.Word(view_->Locate(at, replica)));
  }
  return true;
}

std::string GuessScope::WordName(uint64_t bits) const {
  const MetaWord word(bits);
  if (word.time() == 0) return std::to_string(bits);
  const uint64_t buffer = (word.buffer(ref_.addr).offset() - ExploredRegister::kBuffers) /
                          ExploredRegister::kBufferStride;
  if (buffer >= 2 * kOps * kClientsMax) return Scope::WordName(bits);
  return "[client " + std::to_string(buffer / 2 / kOps) + " op " +
         std::to_string(buffer / 2 % kOps) + (buffer % 2 == 0 ? " guess" : " rewrite") +
         (word.verified() ? " VERIFIED" : "") + " at " + std::to_string(word.time()) + "]";
}

}  // namespace onetrip
