# The three kinds of targets. Sources are found by name, so a new file needs no edit of a build file.

include(GoogleTest)

# onetrip_batches(OUT DIR name SOURCES file...): OUT becomes what is compiled for SOURCES: batches of them
# where ONETRIP_UNITY wants that and it can be, and SOURCES themselves elsewhere. A file that has options of
# its own stays alone.
function(onetrip_batches out)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "DIR" "SOURCES")
  set(alone)
  set(together)
  foreach(source IN LISTS ARG_SOURCES)
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    if(ONETRIP_UNITY AND NOT options)
      cmake_path(ABSOLUTE_PATH source)
      list(APPEND together "${source}")
    else()
      list(APPEND alone "${source}")
    endif()
  endforeach()
  if(together)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/cmake/unity_batches.py"
              --root "${PROJECT_SOURCE_DIR}" --out "${PROJECT_BINARY_DIR}/unity/${ARG_DIR}" ${together}
      OUTPUT_VARIABLE together OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" together "${together}")
    # A class in an anonymous namespace is a file's own in a batch, too, whatever gcc takes the file for.
    set(batches "${together}")
    list(FILTER batches INCLUDE REGEX "^${PROJECT_BINARY_DIR}/")
    if(batches AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_source_files_properties(${batches} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
    endif()
  endif()
  set(${out} ${alone} ${together} PARENT_SCOPE)
endfunction()

# onetrip_library(NAME DEPS target... [PRIVATE_DEPS target...] [FOLDERS folder...])
# One library of every .cc of this folder, or of FOLDERS (patterns) in it, but main.cc and *_main.cc. DEPS are
# the folders it may see; PRIVATE_DEPS are third-party libraries whose headers stay inside its .cc files.
function(onetrip_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "DEPS;PRIVATE_DEPS;FOLDERS")
  if(NOT ARG_FOLDERS)
    set(ARG_FOLDERS .)
  endif()
  list(TRANSFORM ARG_FOLDERS APPEND "/*.cc")
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_FOLDERS})
  list(FILTER sources EXCLUDE REGEX "/([^/]*_)?main\\.cc$")
  if(sources)
    onetrip_batches(sources DIR ${name} SOURCES ${sources})
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

# onetrip_test(NAME SOURCES file... DEPS target... [TIMEOUT seconds] [COST number])
# A GoogleTest program whose cases are ctest cases "NAME.Suite.Case", under AddressSanitizer parts of them
# "NAME.partN"; nothing happens without SOURCES. Where nothing is known of former runs, those of a high COST begin
# first, so that no long one is left at the end.
function(onetrip_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT;COST" "SOURCES;DEPS")
  if(NOT ARG_SOURCES)
    return()
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 1)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  onetrip_batches(sources DIR ${name} SOURCES ${ARG_SOURCES})
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  onetrip_plain_link(${name})
  add_dependencies(onetrip_tests ${name})
  if(ONETRIP_SANITIZE MATCHES "address")
    # A program takes a fifth of a second to begin, longer than most cases: so four parts, not a process for each.
    foreach(part RANGE 3)
      add_test(NAME "${name}.part${part}" COMMAND ${name})
      set_tests_properties("${name}.part${part}" PROPERTIES TIMEOUT 1800 COST ${ARG_COST} ENVIRONMENT
                           "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${part}")
    endforeach()
    return()
  endif()
  # PRE_TEST: a program that cannot even list its cases fails a test run, not the build.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST})
endfunction()
