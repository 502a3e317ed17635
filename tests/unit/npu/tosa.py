"""TOSA 1.0's own definitions, computed with Python's unbounded integers."""


def apply_scale_32(value: int, multiplier: int, shift: int, double_round: bool) -> int:
    """TOSA 1.0, apply_scale_32."""
    add = (1 << shift) >> 1
    if double_round and shift > 31:
        add += (1 << 30) if value >= 0 else -(1 << 30)
    return (value * multiplier + add) >> shift


def reciprocal_average(total: int, count: int) -> int:
    """TOSA 1.0: reciprocal_scale and apply_scale_32 of AVG_POOL2D."""
    bits = (count - 1).bit_length()
    multiplier = (((1 << 30) + 1) << bits) // count
    return (total * multiplier + (1 << (29 + bits))) >> (30 + bits)
