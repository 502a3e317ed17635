# GNU Arm Embedded toolchain for Cortex-M55 with the hard-float ABI.
#
# By -mcpu, not by -march: GCC 12.2 has a v8.1-m.main+mve library, but it is the soft-float one.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR cortex-m55)

set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(ethosu_machine "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard")
# No vectorisation: MVE flushes denormal floats, where the scalar FPU and the host's runtime keep them.
set(CMAKE_CXX_FLAGS_INIT "${ethosu_machine} -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit -fno-tree-vectorize -fno-tree-slp-vectorize")
set(CMAKE_ASM_FLAGS_INIT "${ethosu_machine}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostartfiles --specs=nano.specs")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
