# A board: what all boards share, compiled against the memory_map.hpp of the one that includes this file, and the
# board's linker.ld. memory_map.hpp and memories.ld are generated from the board's pack.
set(common "${CMAKE_CURRENT_LIST_DIR}")
set(shared "${ETHOSU_SHARED_SOURCES_DIR}/board/${ETHOSU_BOARD}")

# A board whose devices differ has a file of the same name beside its linker.ld.
set(sources)
foreach(name IN ITEMS clock.cpp exit.cpp fault.cpp marks.S memory.cpp npu_port.cpp semihosting.cpp startup.cpp uart.cpp)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
    list(APPEND sources "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  else()
    list(APPEND sources "${common}/${name}")
  endif()
endforeach()

# Objects, not an archive: the vector table is referenced by the linker script alone.
add_library(ethosu_board OBJECT ${sources})
target_link_libraries(ethosu_board PUBLIC ethosu_hal_iface)
target_include_directories(ethosu_board PRIVATE ${shared} ${common})
# The compiler's own library without its debug information, which names the folder where Debian built it: another one
# for each architecture of the building machine. The ELF is the same bytes on all of them.
separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -print-libgcc-file-name
  OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/libgcc")
execute_process(COMMAND "${CMAKE_OBJCOPY}" --strip-debug "${libgcc}" "${CMAKE_BINARY_DIR}/libgcc/libgcc.a"
  COMMAND_ERROR_IS_FATAL ANY)

# Ninja links in the build folder: with a relative path, the map names no folder of this machine.
target_link_options(ethosu_board INTERFACE
  -T linker.ld -Llibgcc "-L${CMAKE_CURRENT_SOURCE_DIR}" "-L${shared}" "-L${common}" "-L${ETHOSU_GENERATED_DIR}"
  -Wl,--gc-sections -Wl,--fatal-warnings -Wl,--build-id=none)
set_property(TARGET ethosu_board PROPERTY INTERFACE_LINK_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/linker.ld" "${shared}/memories.ld" "${common}/sections.ld" "${ETHOSU_GENERATED_DIR}/placement.ld")
