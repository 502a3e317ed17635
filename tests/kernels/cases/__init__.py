"""The cases of the kernels' tests by operator: ``operator/variant`` → `Case`.

What stands before the slash is the row of ``bounds.toml`` that says how near to the oracle the result must be;
without a row it must be equal bit for bit.
"""
