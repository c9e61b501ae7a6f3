// The Redis we say we are like.
#ifndef ONETRIP_REDIS_COMPAT_VERSION_H_
#define ONETRIP_REDIS_COMPAT_VERSION_H_

namespace onetrip {

// Clients switch features on by it; replies are those of 7.0, with CLIENT SETINFO of 7.2.
inline constexpr char kRedisVersion[] = "7.2.4";

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VERSION_H_
