#include "client_core/control/usage_codec.h"

#include <algorithm>

#include "client_core/control/control.pb.h"

namespace onetrip {
namespace {

using RepeatedBytes = google::protobuf::RepeatedField<uint64_t>;

// Sums of what thousands of members say stay below 2^64.
constexpr uint64_t kBytesMax = uint64_t{1} << 50;
constexpr uint64_t kBlocksMax = kBytesMax / kBlockBytes;

void EncodeByClass(const BytesByClass& bytes, RepeatedBytes* message) {
  size_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == 0) --end;
  message->Assign(bytes.begin(), bytes.begin() + end);
}

BytesByClass DecodeByClass(const RepeatedBytes& message) {
  BytesByClass bytes{};
  const size_t classes = std::min(bytes.size(), static_cast<size_t>(message.size()));
  for (size_t i = 0; i < classes; ++i) {
    bytes[i] = std::min(message[static_cast<int>(i)], kBytesMax);
  }
  return bytes;
}

}  // namespace

void EncodeUsage(const NodeUsage& usage, control::Report* report) {
  report->set_primary_blocks(usage.blocks);
  report->set_primary_granted_blocks(usage.granted_blocks);
  report->set_reserve_blocks(usage.reserve_blocks);
  report->set_overhead_bytes(usage.overhead_bytes);
  report->set_leaving_blocks(usage.leaving_blocks);
  report->set_view_epoch(usage.view_epoch);
  EncodeByClass(usage.free_bytes, report->mutable_free_bytes());
}

void EncodeUsage(const WorkerUsage& usage, control::Report* report) {
  report->set_retired_bytes(usage.retired_bytes);
  report->set_refused_bytes(usage.refused_bytes);
  EncodeByClass(usage.free_bytes, report->mutable_free_bytes());
}

void EncodeUsage(const PoolUsage& usage, control::Usage* message) {
  message->set_capacity_bytes(usage.capacity_bytes);
  message->set_reserve_bytes(usage.reserve_bytes);
  message->set_granted_bytes(usage.granted_bytes);
  message->set_overhead_bytes(usage.overhead_bytes);
  message->set_retired_bytes(usage.retired_bytes);
  message->set_refused_bytes(usage.refused_bytes);
  EncodeByClass(usage.free_bytes, message->mutable_free_bytes());
}

NodeUsage DecodeNodeUsage(const control::Report& report) {
  NodeUsage usage;
  usage.blocks = std::min<uint64_t>(report.primary_blocks(), kBlocksMax);
  usage.granted_blocks = std::min<uint64_t>(report.primary_granted_blocks(), kBlocksMax);
  usage.reserve_blocks = std::min<uint64_t>(report.reserve_blocks(), kBlocksMax);
  usage.overhead_bytes = std::min<uint64_t>(report.overhead_bytes(), kBytesMax);
  usage.free_bytes = DecodeByClass(report.free_bytes());
  usage.leaving_blocks = report.leaving_blocks();
  usage.view_epoch = report.view_epoch();
  return usage;
}

WorkerUsage DecodeWorkerUsage(const control::Report& report) {
  WorkerUsage usage;
  usage.retired_bytes = std::min<uint64_t>(report.retired_bytes(), kBytesMax);
  usage.refused_bytes = std::min<uint64_t>(report.refused_bytes(), kBytesMax);
  usage.free_bytes = DecodeByClass(report.free_bytes());
  return usage;
}

PoolUsage DecodePoolUsage(const control::Usage& message) {
  PoolUsage usage;
  usage.capacity_bytes = message.capacity_bytes();
  usage.reserve_bytes = message.reserve_bytes();
  usage.granted_bytes = message.granted_bytes();
  usage.overhead_bytes = message.overhead_bytes();
  usage.retired_bytes = message.retired_bytes();
  usage.refused_bytes = message.refused_bytes();
  usage.free_bytes = DecodeByClass(message.free_bytes());
  return usage;
}

}  // namespace onetrip
