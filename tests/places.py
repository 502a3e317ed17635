"""Where things are in this repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOLDEN_PTE = ROOT / "tests" / "golden" / "pte"
GOLDEN_PTD = ROOT / "tests" / "golden" / "ptd"
GOLDEN_LOGS = ROOT / "tests" / "golden" / "logs"
GOLDEN_KIT_LOGS = ROOT / "tests" / "golden" / "kit_logs"
