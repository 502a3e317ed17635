"""A `.tflite` becomes a `.pte`: Vela, the kernels of what stays on the CPU, and the interpreters that it is compared with."""
