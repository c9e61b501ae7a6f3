// The state that a master's store holds after a change, for stores in memory.
#ifndef ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_
#define ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_

#include "master/durable_change.h"

#endif  // ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_
