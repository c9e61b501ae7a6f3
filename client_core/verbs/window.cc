#include "client_core/verbs/window.h"

#include <cerrno>
#include <chrono>
#include <cstring>

namespace onetrip {

Result<std::unique_ptr<VerbsWindow>> VerbsWindow::Bind(VerbsDevice& device,
                                                       const VerbsMemory& memory,
                                                       VerbsQueuePair& pair, ibv_cq* completions,
                                                       std::string* reason) {
  const auto fail = [&](const char* why) {
    *reason = "the RDMA device " + device.name() + " binds no memory window: " + why;
    return Status(StatusCode::kUnavailable, "there is no memory window");
  };
  ibv_mw* const window = ibv_alloc_mw(device.domain(), IBV_MW_TYPE_2);
  if (window == nullptr) return fail(std::strerror(errno));
  std::unique_ptr<VerbsWindow> bound(new VerbsWindow(device, window));
  ibv_send_wr request{};
  request.wr_id = uint64_t{window->rkey} << 32 | window->handle;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  request.bind_mw.bind_info.mr = memory.region();
  request.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(memory.start());
  request.bind_mw.bind_info.length = memory.bytes();
  request.bind_mw.bind_info.mw_access_flags =
      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  ibv_send_wr* bad = nullptr;
  const int error = pair.Post(&request, &bad);
  if (error != 0) return fail(std::strerror(error));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  ibv_wc done{};
  int count = 0;
  // A completion may have been left of an earlier one that was given up.
  while ((count = ibv_poll_cq(completions, 1, &done)) == 0 ||
         (count == 1 && done.wr_id != request.wr_id)) {
    if (std::chrono::steady_clock::now() > end) return fail(std::strerror(ETIMEDOUT));
  }
  if (count != 1 || done.status != IBV_WC_SUCCESS) return fail(ibv_wc_status_str(done.status));
  window->rkey = request.bind_mw.rkey;
  return bound;
}

VerbsWindow::~VerbsWindow() { device_.Demand(ibv_dealloc_mw(window_), "ends a window"); }

}  // namespace onetrip
