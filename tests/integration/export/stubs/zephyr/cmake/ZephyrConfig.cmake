# A stub of Zephyr's CMake package: what the exported CMakeLists.txt takes of the real one, and no more. The application is
# compiled for a Cortex-M55 against stub headers, and never linked. CONFIG_… come from the fragment that KCONFIG_FILE names.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(language IN ITEMS C CXX ASM)
  set(CMAKE_${language}_COMPILER arm-none-eabi-g++)
  set(CMAKE_${language}_FLAGS_INIT "-mcpu=cortex-m55 -mfloat-abi=hard")
endforeach()
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
project(stub-of-zephyr C CXX ASM)

file(STRINGS ${KCONFIG_FILE} lines REGEX "^CONFIG_")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([A-Z0-9_]+)=(.*)$" _ "${line}")
  set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

add_library(app STATIC)
target_compile_features(app PRIVATE cxx_std_17)
target_compile_options(app PRIVATE -Wall -Wextra -Werror $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
target_include_directories(app SYSTEM PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../include)

function(zephyr_linker_sources place file)
  if(NOT place STREQUAL "SECTIONS" OR NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    message(FATAL_ERROR "no linker script ${file} at ${place}")
  endif()
endfunction()

# Modules: a stub of ExecuTorch's, with the headers of its wheel.
set(ZEPHYR_EXECUTORCH_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR}/../../executorch)
add_library(libexecutorch INTERFACE)
target_include_directories(libexecutorch SYSTEM INTERFACE
  ${EXECUTORCH_HEADERS} ${EXECUTORCH_HEADERS}/executorch/runtime/core/portable_type/c10)
target_compile_definitions(libexecutorch INTERFACE C10_USING_CUSTOM_GENERATED_MACROS)
foreach(name IN ITEMS executorch cortex_m_ops_lib cortex_m_kernels cmsis-nn quantized_ops_lib quantized_kernels)
  add_library(${name} INTERFACE)
endforeach()
if(CONFIG_ETHOS_U)
  add_library(executorch_delegate_ethos_u INTERFACE)
endif()
