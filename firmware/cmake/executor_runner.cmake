# The firmware of one model: its bytes, its data files, its memory pools and exactly the kernels that it calls.
add_executable(executor_runner app/main.cpp app/pools.cpp app/model.S
  "${ETHOSU_GENERATED_DIR}/data_files.S" "${ETHOSU_GENERATED_DIR}/selected_kernels.cpp")
target_include_directories(executor_runner PRIVATE "${ETHOSU_GENERATED_DIR}")
target_link_libraries(executor_runner PRIVATE ethosu_board ethosu_app)
set_target_properties(executor_runner PROPERTIES SUFFIX ".elf")
# A build tree of the resident firmware alone has no data files.
set_source_files_properties("${ETHOSU_GENERATED_DIR}/data_files.S" PROPERTIES GENERATED TRUE)
# The assembler's .incbin is invisible to dependency scanning.
set_source_files_properties(app/model.S PROPERTIES OBJECT_DEPENDS "${ETHOSU_GENERATED_DIR}/model.pte")
target_link_options(executor_runner PRIVATE "LINKER:-Map=${CMAKE_BINARY_DIR}/executor_runner.map")
