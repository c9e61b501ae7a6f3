# Language, warnings, sanitizers, ccache and output folders: everything that holds for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
# -g1: lines and functions for profiles and stacks; variables would be a quarter of the compile time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

# Not -Wpedantic: unsigned __int128 is used for 64x64 bit products.
add_compile_options(-Wall -Wextra -Werror)

# Objects carry both plain code, which the tests link quickly, and what link-time optimisation needs.
if(ONETRIP_LTO)
  add_compile_options(-flto=auto -ffat-lto-objects)
endif()

# onetrip_optimise_link(TARGET): link-time optimisation, where the build has it.
function(onetrip_optimise_link target)
  if(ONETRIP_LTO)
    target_link_options(${target} PRIVATE -O2 -flto=auto)
  endif()
endfunction()

# onetrip_plain_link(TARGET): none, whatever the build has, and no objects of its own for it.
function(onetrip_plain_link target)
  if(ONETRIP_LTO)
    target_compile_options(${target} PRIVATE -fno-lto)
    target_link_options(${target} PRIVATE -fno-lto)
  endif()
endfunction()

# onetrip_compile_quickly(TARGET): for the tests' own files, which are half of all there is to compile and
# wait for what they test: less optimised. Under a sanitizer gcc takes longer without any optimisation, clang
# less than half the time.
function(onetrip_compile_quickly target)
  if(NOT ONETRIP_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -Og)
  endif()
endfunction()

if(ONETRIP_SANITIZE)
  # -g1: reports need lines, not variables.
  add_compile_options(-fsanitize=${ONETRIP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ONETRIP_SANITIZE})
  if(ONETRIP_SANITIZE MATCHES "undefined")
    # A finding must fail the test, not scroll by.
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND ONETRIP_SANITIZE MATCHES "address")
    # As gcc tells it: tests run fewer rounds, and coroutine frames are not kept for the next one.
    add_compile_definitions(__SANITIZE_ADDRESS__=1)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code makes gcc's flow analysis report variables that are always set; the builds
    # without sanitizers keep the warning.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

if(ONETRIP_PLANTED_BUGS)
  add_compile_definitions(ONETRIP_PLANTED_BUGS)
endif()

if(ONETRIP_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ONETRIP_FUZZ needs clang++, which has libFuzzer; take the preset fuzz")
  endif()
  # clang 14 cannot emit the function check for coroutines.
  add_compile_options(-fno-sanitize=function)
endif()

find_program(ONETRIP_CCACHE ccache)
if(ONETRIP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Checkouts of the same files in other places share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
                                  CCACHE_NOHASHDIR=1 "${ONETRIP_CCACHE}")
endif()
