"""What judges, shows or rewrites finished records. Readers import neither ``npu`` nor ``aot``."""
