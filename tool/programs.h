// Where the programs of a cluster lie.
#ifndef ONETRIP_TOOL_PROGRAMS_H_
#define ONETRIP_TOOL_PROGRAMS_H_

#include <string>

namespace onetrip {

// The path of another program: they all lie beside this one.
std::string ProgramPath(const std::string& name);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_PROGRAMS_H_
