# What the tier without torch stands on. All of it comes from the system's package manager; the
# header-only ones are found by a header, because distributions disagree on their CMake packages.
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(SQLite3 3.31 REQUIRED)
# Compressed tables and data files.
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)

function(sordino_header_library name header package)
  find_path(SORDINO_${name}_INCLUDE ${header} HINTS ${SORDINO_EXTRA_INCLUDE} ${ARGN})
  if(NOT SORDINO_${name}_INCLUDE)
    message(FATAL_ERROR "The header ${header} was not found. Install the package '${package}' "
      "(or run tools/setup, which installs everything), then configure again.")
  endif()
  add_library(sordino_${name} INTERFACE)
  target_include_directories(sordino_${name} SYSTEM INTERFACE
    $<BUILD_INTERFACE:${SORDINO_${name}_INCLUDE}>)
endfunction()

sordino_header_library(boost boost/math/special_functions/erf.hpp libboost-math-dev)
sordino_header_library(cli11 CLI/CLI.hpp libcli11-dev)
sordino_header_library(json nlohmann/json.hpp nlohmann-json3-dev)
sordino_header_library(kissfft kissfft/kissfft.hh libkissfft-dev)
sordino_header_library(tomlplusplus toml++/toml.h libtomlplusplus-dev)

# Charts of `sordino report`, embedded in its pages.
find_file(SORDINO_CHART_JS NAMES chart.min.js NO_DEFAULT_PATH PATHS
  ${PROJECT_SOURCE_DIR}/.deps/chart.js /usr/share/javascript/chart.js
  /usr/local/share/javascript/chart.js)
if(NOT SORDINO_CHART_JS)
  message(FATAL_ERROR "chart.min.js was not found. Install the package 'libjs-chart.js' (or run "
    "tools/setup, which installs everything), then configure again.")
endif()
file(READ ${SORDINO_CHART_JS} chart_head LIMIT 200)
if(NOT chart_head MATCHES "Chart\\.js v3\\.")
  message(FATAL_ERROR "${SORDINO_CHART_JS} is not version 3 of Chart.js; name one with "
    "-DSORDINO_CHART_JS=FILE.")
endif()

if(SORDINO_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(SORDINO_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
if(SORDINO_TORCH)
  # Images.
  find_package(PNG REQUIRED)
  find_package(JPEG REQUIRED)
  include(SordinoLibtorch)
  include(SordinoCuda)
endif()
