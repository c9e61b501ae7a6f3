// GuessScope: clients that read and write one register by Safe-Guess.
//
//   R  SafeGuess::Read; the number of the write that it returns, 0 if nothing was written
//   W  SafeGuess::Write
//
// No time passes, so a clock is a number: clients guess by clocks that differ by given ticks, in
// either direction. The register is empty at first, and every write has two buffers of its own.
// A majority answers at all times, so an operation that does not end by itself, or fails, is wrong.
#ifndef ONETRIP_TESTS_EXPLORE_GUESS_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_GUESS_SCOPE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/replication/safe_guess.h"
#include "tests/explore/scope.h"

namespace onetrip {

struct GuessOptions {
  std::vector<std::string_view> programs;         // one word per client, of the letters R and W
  std::array<int64_t, kClientsMax> skew_us = {};  // how far each client's clock is off
  Scope::Faults faults = {};
  FabricTraits traits{.has_max = false};
  uint32_t lanes = 2;           // fewer than writers: they share
  uint32_t in_place_bytes = 0;  // 0: no copies, 8: all values have one
  bool widens = false;          // reads may ask the third replica at any moment
};

// A register that no client has written, of values of 8 bytes, where scopes put it.
struct ExploredRegister {
  static constexpr GlobalAddr kAddr{0, 4096};
  static constexpr uint64_t kBuffers = 8192;
  static constexpr uint64_t kBufferStride = 64;

  static RegisterRef Ref(uint32_t lanes, uint32_t in_place_bytes);
  static GlobalAddr Buffer(uint64_t index) { return {0, kBuffers + index * kBufferStride}; }
  // The initial word of the register or of a buffer; 0 elsewhere.
  static uint64_t InitialWord(const RegisterRef& ref, uint64_t offset);
  // In the bulk of a buffer: named by a lane's word, which is written behind it.
  static bool IsBulk(uint64_t offset) {
    return offset >= kBuffers && (offset - kBuffers) % kBufferStride >= kBufferBulkOffset;
  }
  static std::string CellName(const RegisterRef& ref, uint64_t offset);
};

class GuessScope final : public Scope {
 public:
  explicit GuessScope(GuessOptions options);

  static uint64_t ValueOf(size_t client, size_t op) { return client * 4 + op + 1; }

  [[nodiscard]] const GuessOptions& options() const { return options_; }
  [[nodiscard]] FabricTraits traits() const override { return options_.traits; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }
  [[nodiscard]] const RegisterRef& ref() const { return ref_; }
  [[nodiscard]] uint32_t writers() const;

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  [[nodiscard]] bool clients_remember() const override { return true; }
  [[nodiscard]] bool polls_are_idle() const override { return false; }
  [[nodiscard]] bool asks_quorums() const override { return true; }
  [[nodiscard]] bool IsLookedAtLater(const PostedRound& round,
                                     const CellTable& cells) const override;
  [[nodiscard]] bool IsNamedLater(RemoteAddr at) const override {
    return ExploredRegister::IsBulk(at.offset);
  }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override {
    return ExploredRegister::InitialWord(ref_, at.offset);
  }
  [[nodiscard]] uint64_t InitialValue() const override { return 0; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override;
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                uint64_t* value) const override;
  [[nodiscard]] std::string WordName(uint64_t word) const override;
  [[nodiscard]] std::string CellName(RemoteAddr at) const override {
    return ExploredRegister::CellName(ref_, at.offset);
  }

 private:
  const GuessOptions options_;
  std::shared_ptr<const View> view_;
  const RegisterRef ref_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_GUESS_SCOPE_H_
