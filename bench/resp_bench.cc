// Measures the cost of RESP and dispatch per command, without sockets.
//
// Items are commands: read the time per item as one over items_per_second. BM_Dispatch* runs whole
// pipelines of 16 through parser, command table and handlers; GET and SET on a little cluster of
// three replicas in this process, so that the difference to BM_DispatchPing is the storage.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/resp.h"
#include "redis_compat/protocol/resp_writer.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

constexpr size_t kPipeline = 16;

std::string Command(const std::vector<std::string>& arguments) {
  std::string text = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& argument : arguments) {
    text += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return text;
}

std::string Pipeline(const std::vector<std::string>& arguments) {
  std::string text;
  for (size_t i = 0; i < kPipeline; ++i) {
    text += Command(arguments);
  }
  return text;
}

// Parses all commands of `input`; calls visit(parser) for each.
template <typename Visit>
void ParseAll(RespParser& parser, std::string_view input, Visit visit) {
  const RespLimits limits;
  while (parser.Next(input, limits) == RespResult::kCommand) {
    visit(parser);
    input.remove_prefix(parser.consumed());
  }
}

void BM_ParseGet(benchmark::State& state) {
  const std::string input = Pipeline({"GET", "key:000000012345"});
  RespParser parser;
  for (auto _ : state) {
    ParseAll(parser, input, [](const RespParser& p) { benchmark::DoNotOptimize(p.argv().data()); });
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_ParseGet);

void BM_ParseSet(benchmark::State& state) {
  const std::string value(static_cast<size_t>(state.range(0)), 'x');
  const std::string input = Pipeline({"SET", "key:000000012345", value});
  RespParser parser;
  for (auto _ : state) {
    ParseAll(parser, input, [](const RespParser& p) { benchmark::DoNotOptimize(p.argv().data()); });
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_ParseSet)->Arg(64)->Arg(1024);

void BM_ParseInlinePing(benchmark::State& state) {
  std::string input;
  for (size_t i = 0; i < kPipeline; ++i) {
    input += "PING\r\n";
  }
  RespParser parser;
  for (auto _ : state) {
    ParseAll(parser, input, [](const RespParser& p) { benchmark::DoNotOptimize(p.argv().data()); });
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_ParseInlinePing);

void BM_FindCommand(benchmark::State& state) {
  const std::vector<std::string> names = {"GET", "set", "INCR", "mset", "DEL", "incrbyfloat"};
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(FindCommand(names[i]));
    i = i + 1 == names.size() ? 0 : i + 1;
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BM_FindCommand);

void BM_WriteBulk(benchmark::State& state) {
  const std::string value(static_cast<size_t>(state.range(0)), 'x');
  OutputBuffer buffer;
  for (auto _ : state) {
    ReplyWriter out(buffer, 2);
    for (size_t i = 0; i < kPipeline; ++i) {
      out.Bulk(value);
    }
    benchmark::DoNotOptimize(buffer.size());
    buffer.Clear();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_WriteBulk)->Arg(64)->Arg(1024);

void BM_WriteInteger(benchmark::State& state) {
  OutputBuffer buffer;
  int64_t value = 0;
  for (auto _ : state) {
    ReplyWriter out(buffer, 2);
    for (size_t i = 0; i < kPipeline; ++i) {
      out.Integer(++value);
    }
    benchmark::DoNotOptimize(buffer.size());
    buffer.Clear();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_WriteInteger);

// The path of GET but for the storage: parse, find, answer a 64 byte value.
void BM_ParseFindReply(benchmark::State& state) {
  const std::string input = Pipeline({"GET", "key:000000012345"});
  const std::string value(64, 'x');
  RespParser parser;
  OutputBuffer buffer;
  for (auto _ : state) {
    ParseAll(parser, input, [&](const RespParser& p) {
      ReplyWriter out(buffer, 2);
      const CommandRow* const row = FindCommand(p.argv()[0]);
      row->AcceptsArgumentCount(p.argv().size()) ? out.Bulk(value) : out.Error("ERR arity");
    });
    buffer.Clear();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}
BENCHMARK(BM_ParseFindReply);

// Runs a pipeline the way a connection does.
void RunPipeline(benchmark::State& state, RedisWorker& worker,
                 const std::vector<std::string>& pipelines) {
  Session session;
  InitializeSession(session, 1, 0, worker.hooks.config());
  const RespLimits limits = LimitsOf(session, worker.hooks.config());
  RespParser parser;
  OutputBuffer buffer;
  size_t next = 0;
  for (auto _ : state) {
    std::string_view input = pipelines[next];
    next = next + 1 == pipelines.size() ? 0 : next + 1;
    while (parser.Next(input, limits) == RespResult::kCommand) {
      ReplyWriter out(buffer, session.protocol);
      CommandContext context{session, worker.hooks, worker.worker->kv(), worker.hooks.stats(),
                             out,     parser.argv()};
      if (BeginCommand(context) == CommandStart::kAwait) {
        // On shm nothing suspends.
        Task<void> task = context.command->awaited(context);
        CHECK(task.Start());
        EndCommand(context);
      }
      input.remove_prefix(parser.consumed());
    }
    benchmark::DoNotOptimize(buffer.size());
    buffer.Clear();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kPipeline));
}

// Pipelines of one command on keys spread over `keys`.
std::vector<std::string> PipelinesOf(const std::string& name, size_t keys, bool with_value) {
  Rng rng(1);
  std::vector<std::string> pipelines(keys / kPipeline);
  for (std::string& pipeline : pipelines) {
    for (size_t i = 0; i < kPipeline; ++i) {
      std::vector<std::string> arguments = {name, "key:" + std::to_string(rng.Below(keys))};
      if (with_value) arguments.emplace_back(64, 'x');
      pipeline += Command(arguments);
    }
  }
  return pipelines;
}

void BM_DispatchPing(benchmark::State& state) {
  RedisWorker worker;
  RunPipeline(state, worker, {Pipeline({"PING"})});
}
BENCHMARK(BM_DispatchPing);

void BM_DispatchGet(benchmark::State& state) {
  RedisWorker worker;
  const auto keys = static_cast<size_t>(state.range(0));
  for (size_t i = 0; i < keys; ++i) {
    CHECK(worker.worker->Set("key:" + std::to_string(i), std::string(64, 'x')).ok());
  }
  RunPipeline(state, worker, PipelinesOf("GET", keys, false));
}
BENCHMARK(BM_DispatchGet)->Arg(1000)->Arg(100'000);

void BM_DispatchSet(benchmark::State& state) {
  RedisWorker worker;
  const auto keys = static_cast<size_t>(state.range(0));
  RunPipeline(state, worker, PipelinesOf("SET", keys, true));
}
BENCHMARK(BM_DispatchSet)->Arg(1000)->Arg(100'000);

}  // namespace
}  // namespace onetrip
