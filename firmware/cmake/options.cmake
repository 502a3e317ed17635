# One set of compile options for everything that is ours, on the target and on the host.
add_library(ethosu_options INTERFACE)
target_compile_features(ethosu_options INTERFACE cxx_std_17)
target_compile_options(ethosu_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Werror>
  # A fused multiply-add rounds once where the host's x86-64 code rounds twice.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  -ffunction-sections -fdata-sections
  # The same bytes from any folder.
  "SHELL:-ffile-prefix-map=\"${CMAKE_SOURCE_DIR}\"=firmware"
  "SHELL:-ffile-prefix-map=\"${CMAKE_BINARY_DIR}\"=build")
target_include_directories(ethosu_options INTERFACE ${CMAKE_SOURCE_DIR} ${ETHOSU_SHARED_SOURCES_DIR})
