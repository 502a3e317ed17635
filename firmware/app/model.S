// The .pte, byte for byte. `model.pte` is found in the folder of generated files.
// 128: what ExecuTorch aligns segments to; the delegates' 16 is within it.
    .section .model, "a", %progbits
    .balign 128
    .global ethosu_model_begin
    .global ethosu_model_end
ethosu_model_begin:
    .incbin "model.pte"
ethosu_model_end:
    .size ethosu_model_begin, ethosu_model_end - ethosu_model_begin
