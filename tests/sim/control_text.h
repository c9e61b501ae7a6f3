// Texts of the messages between processes and the master, for people who read a timeline.
#ifndef ONETRIP_TESTS_SIM_CONTROL_TEXT_H_
#define ONETRIP_TESTS_SIM_CONTROL_TEXT_H_

#include <string>

#include "master/messages.h"

namespace onetrip {

std::string DescribeControl(const MemberMessage& message);
std::string DescribeControl(const MasterMessage& message);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_CONTROL_TEXT_H_
