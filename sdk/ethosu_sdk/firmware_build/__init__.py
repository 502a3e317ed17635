"""`.pte` → bare-metal firmware: selective kernels, memory placement, CMake and the GNU Arm toolchain."""
