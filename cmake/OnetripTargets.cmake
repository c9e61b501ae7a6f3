# The three kinds of targets. Sources are found by name, so a new file needs no edit of a build file.

include(GoogleTest)

# onetrip_library(NAME DEPS target... [PRIVATE_DEPS target...])
# One library of every .cc of this folder but main.cc and *_main.cc. DEPS are the folders it may see;
# PRIVATE_DEPS are third-party libraries whose headers stay inside its .cc files.
function(onetrip_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "DEPS;PRIVATE_DEPS")
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  list(FILTER sources EXCLUDE REGEX "/([^/]*_)?main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} "${PROJECT_SOURCE_DIR}"
                                              "${PROJECT_BINARY_DIR}/generated")
endfunction()

# onetrip_executable(NAME MAIN file DEPS target... [ON_DATA_PATH])
# A program whose main is in MAIN; nothing happens when that file does not exist. ON_DATA_PATH: worth
# the minutes of link-time optimisation.
function(onetrip_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "ON_DATA_PATH" "MAIN" "DEPS")
  file(GLOB main CONFIGURE_DEPENDS "${ARG_MAIN}")
  if(main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ONETRIP_ALLOCATOR})
    if(ARG_ON_DATA_PATH)
      onetrip_optimise_link(${name})
    else()
      onetrip_plain_link(${name})
    endif()
  endif()
endfunction()

# onetrip_test(NAME SOURCES file... DEPS target... [TIMEOUT seconds])
# A GoogleTest program whose cases are ctest cases "NAME.Suite.Case"; nothing happens without SOURCES.
function(onetrip_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "SOURCES;DEPS")
  if(NOT ARG_SOURCES)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  onetrip_plain_link(${name})
  # PRE_TEST: a program that cannot even list its cases fails a test run, not the build.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
