#include "master/work/work_table.h"

#include <algorithm>
#include <iterator>

#include "client_core/base/check.h"
#include "master/work/copy.h"
#include "master/work/flush.h"
#include "master/work/grow.h"
#include "master/work/leave.h"
#include "master/work/move.h"
#include "master/work/node_out.h"
#include "master/work/records_only.h"
#include "master/work/resolve.h"
#include "master/work/swap.h"

namespace onetrip::master {
namespace {

struct Row {
  Work work;
  const WorkKind& (*kind)();
};

// More urgent work comes first. The last six are steps of moves, and kMove says which is next.
constexpr Row kRows[] = {
    {Work::kNodeOut, NodeOutWork},          //
    {Work::kResolve, ResolveWork},          //
    {Work::kSwap, SwapWork},                //
    {Work::kFlush, FlushWork},              //
    {Work::kCopy, CopyWork},                //
    {Work::kMove, MoveWork},                //
    {Work::kRecordsOnly, RecordsOnlyWork},  //
    {Work::kGrow, GrowWork},                //
    {Work::kLeave, LeaveWork},              //
    {Work::kMoveIndex, MoveIndexWork},      //
    {Work::kCut, CutWork},
};

}  // namespace

const WorkKind& KindOf(Work work) {
  const Row* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                      [work](const Row& one) { return one.work == work; });
  CHECK(row != std::end(kRows));
  return row->kind();
}

std::optional<Hold> FirstDue(const ClusterState& state, uint64_t now_us) {
  for (const Row& row : kRows) {
    std::optional<Hold> due = row.kind().Due(state, now_us);
    if (due.has_value()) return due;
  }
  return std::nullopt;
}

}  // namespace onetrip::master
