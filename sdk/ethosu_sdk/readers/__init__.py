"""Commands that judge, show or convert finished records. Readers import neither ``npu`` nor ``aot``."""
