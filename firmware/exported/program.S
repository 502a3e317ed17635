// The program and its first inputs, byte for byte. The inputs are an input image (sdk/ethosu_sdk/program/protocol.py),
// which a debugger may replace before the application runs.
    .section .ethosu_model, "a", %progbits
    .balign 128
    .global ethosu_model_begin
    .global ethosu_model_end
ethosu_model_begin:
    .incbin "model.pte"
ethosu_model_end:

    .section .ethosu_inputs, "aw", %progbits
    .balign 16
    .global input_image
    .global input_image_end
input_image:
    .incbin "inputs.bin"
input_image_end:
