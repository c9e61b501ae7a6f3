# Third-party libraries, all of them Debian packages; docs/LIBRARIES.md says what each is for.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET libevent_core libevent_pthreads)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)

# The sanitizers bring an allocator of their own.
if(ONETRIP_SANITIZE)
  set(ONETRIP_ALLOCATOR "")
else()
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  set(ONETRIP_ALLOCATOR PkgConfig::JEMALLOC)
endif()

if(ONETRIP_TESTS)
  find_package(GTest REQUIRED)
  pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(ONETRIP_BENCH)
  find_package(benchmark REQUIRED)
endif()
