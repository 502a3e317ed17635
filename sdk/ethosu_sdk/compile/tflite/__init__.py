"""A `.tflite` becomes a `.pte`: Vela, kernels for what stays on the CPU, and the interpreters to compare with."""
