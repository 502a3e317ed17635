# The firmware of a board for any model: all kernels, and room for a program that arrives at run time: laid into memory
# or named by the host (resident), or over the UART (device).
foreach(kind IN ITEMS resident device)
  add_executable(${kind}_runner EXCLUDE_FROM_ALL
    app/${kind}/main.cpp app/resident/loading.cpp "${ETHOSU_GENERATED_DIR}/selected_kernels.cpp")
  target_include_directories(${kind}_runner PRIVATE "${ETHOSU_GENERATED_DIR}")
  target_link_libraries(${kind}_runner PRIVATE ethosu_board ethosu_app)
  set_target_properties(${kind}_runner PROPERTIES SUFFIX ".elf")
  target_link_options(${kind}_runner PRIVATE "LINKER:-Map=${CMAKE_BINARY_DIR}/${kind}_runner.map")
endforeach()
