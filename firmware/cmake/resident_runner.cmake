# The firmware of a board for any model: all kernels, and room for a program that arrives at run time.
add_executable(resident_runner EXCLUDE_FROM_ALL app/resident/main.cpp "${ETHOSU_GENERATED_DIR}/selected_kernels.cpp")
target_include_directories(resident_runner PRIVATE "${ETHOSU_GENERATED_DIR}")
target_link_libraries(resident_runner PRIVATE ethosu_board ethosu_app)
set_target_properties(resident_runner PROPERTIES SUFFIX ".elf")
target_link_options(resident_runner PRIVATE "LINKER:-Map=${CMAKE_BINARY_DIR}/resident_runner.map")
