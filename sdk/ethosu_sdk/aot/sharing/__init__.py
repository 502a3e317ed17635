"""One lowering for many targets: a program with its TOSA graphs, for which Vela is called later, target by target.

ExecuTorch partitions and lowers for a TOSA specification, of which there are two: that of Ethos-U55 and U65, and that
of Ethos-U85. System configuration, memory mode and Vela's version come after it, and so does the MAC count, but for
Ethos-U55-32 and -64, whose look-up tables need a repair (:mod:`ethosu_sdk.aot.repairs.lost_lookup_tables`).
"""

from __future__ import annotations

from ethosu_sdk.aot.sharing.variants import representative, tosa_variant, variant

__all__ = ["representative", "tosa_variant", "variant"]
