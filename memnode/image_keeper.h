// ImageKeeper: the thread that keeps an image's age, and the copy of the master's state beside it,
// up to date while the node serves. A disk that stands still holds up no thread but this one.
#ifndef ONETRIP_MEMNODE_IMAGE_KEEPER_H_
#define ONETRIP_MEMNODE_IMAGE_KEEPER_H_

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "memnode/backing.h"

namespace onetrip {

class ImageKeeper {
 public:
  // `backing` is in use, is a file, and outlives it.
  explicit ImageKeeper(Backing& backing);
  // Stops.
  ~ImageKeeper();

  // The file beside an image.
  static std::string StatePath(const std::string& image) { return image + ".state"; }

  // Any thread; returns at once.
  void KeepState(std::string file);
  // The age is written soon.
  void WriteSoon();
  // Ends the thread when it has written what it was given. More than once.
  void Stop();

 private:
  void Run();
  void Write(const std::optional<std::string>& state);

  Backing& backing_;
  bool complained_ = false;  // the thread's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> state_;
  bool due_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_IMAGE_KEEPER_H_
