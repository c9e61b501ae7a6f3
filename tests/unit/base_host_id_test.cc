#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_core/base/host_id.h"

namespace onetrip {
namespace {

TEST(HostIdTest, AProcessHasEndedWhenItsFilesAreClosed) {
  EXPECT_NE(ProcessSpace(), "");
  EXPECT_FALSE(HasEnded(static_cast<uint64_t>(getpid())));
  EXPECT_TRUE(HasEnded(INT32_MAX));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  close(ends[1]);
  const auto pid = static_cast<uint64_t>(child);
  EXPECT_FALSE(HasEnded(pid));
  kill(child, SIGKILL);
  // Its end of the pipe is closed as a socket would be, and its parent has not waited for it yet.
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  EXPECT_TRUE(HasEnded(pid));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(HasEnded(pid));
  close(ends[0]);
}

}  // namespace
}  // namespace onetrip
