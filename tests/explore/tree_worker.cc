#include "tests/explore/tree_worker.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "redis_compat/dispatch/dispatch.h"

namespace onetrip {
namespace {

constexpr uint32_t kBlocksPerSeat = 15;
constexpr int64_t kClusterUs = 1'000'000;
constexpr int64_t kLaterUs = 1'000;

DataPathOptions OptionsOf() {
  DataPathOptions options = ExploreDataPathOptions();
  options.epoch_tick_us = kOpTimeoutMs * 1000;  // never
  options.hot_after = 0;
  options.tree = kExploredTree;
  options.page_cache_bytes = 1 << 16;
  return options;
}

std::vector<std::string_view> WordsOf(std::string_view command) {
  std::vector<std::string_view> words;
  while (!command.empty()) {
    const size_t end = std::min(command.find(' '), command.size());
    words.push_back(command.substr(0, end));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  return words;
}

}  // namespace

TreeWorker::TreeWorker(ExploreExecutor& executor, ExploreFabric& fabric,
                       std::shared_ptr<const View> view, size_t seat)
    : master_(std::move(view), kClusterUs + (seat < kClientsMax ? kLaterUs : 0)),
      hold_(executor),
      context_(
          executor, fabric, master_, hold_,
          {WorkerId{static_cast<uint32_t>(seat) + 1}, WorkerIndex{static_cast<uint16_t>(seat)}},
          OptionsOf()),
      engine_(MakeEngine(EngineKind::kSnapshot, context_)),
      kv_(context_, *engine_) {
  context_.memory_observer = &ledger_;
  session_.authenticated = true;
  fabric.OwnBlocks(FirstBlockOf(seat), BlocksOf(seat));
}

uint32_t TreeWorker::FirstBlockOf(size_t seat) {
  return kRootBlocks + static_cast<uint32_t>(seat) * kBlocksPerSeat;
}

uint32_t TreeWorker::BlocksOf(size_t seat) {
  return seat < kClientsMax ? kBlocksPerSeat : kBlocksPerRegion - 1 - FirstBlockOf(kClientsMax);
}

// Hashes would stay packed as long as Redis keeps them in its compact encoding.
Task<bool> TreeWorker::Start() {
  constexpr std::string_view kFewFields[] = {"CONFIG", "SET", "hash-max-listpack-entries", "2"};
  const Status status = co_await kv_.Start();
  if (!status.ok()) co_return false;
  const std::string reply = co_await Send(kFewFields);
  co_return reply == "+OK\r\n";
}

Task<std::string> TreeWorker::Run(std::string_view command, std::string_view key) {
  std::vector<std::string_view> argv = WordsOf(command);
  argv.insert(argv.begin() + 1, key);
  co_return co_await Send(argv);
}

Task<void> TreeWorker::Maintain(size_t rounds) {
  for (size_t i = 0; i < rounds; ++i) co_await kv_.TEST_Maintain();
}

Task<std::string> TreeWorker::Send(std::span<const std::string_view> argv) {
  OutputBuffer output;
  ReplyWriter out(output, session_.protocol);
  CommandContext context{session_, hooks_, kv_, hooks_.stats(), out, argv};
  co_await Dispatch(context);
  co_return output.TEST_ToString();
}

std::vector<std::string> ReplyParts(std::string_view reply) {
  std::vector<std::string> parts;
  while (!reply.empty()) {
    const size_t end = std::min(reply.find("\r\n"), reply.size());
    const char mark = reply[0];
    std::string_view text = reply.substr(1, end - 1);
    reply.remove_prefix(std::min(end + 2, reply.size()));
    if (mark == '*') continue;
    if (mark == '$') {
      size_t bytes = 0;
      if (text == "-1") {
        parts.emplace_back();
        continue;
      }
      std::from_chars(text.data(), text.data() + text.size(), bytes);
      text = reply.substr(0, bytes);
      reply.remove_prefix(std::min(bytes + 2, reply.size()));
    }
    parts.emplace_back(text);
  }
  return parts;
}

}  // namespace onetrip
