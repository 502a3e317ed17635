"""The scaling of TFLite's reference kernels, in two roundings, with Python's integers."""


def high_product(value: int, scale: int) -> int:
    """The upper half of twice the product: half up, as gemmlowp's nudge and division towards 0 make it."""
    product = value * scale
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    quotient = (product + nudge) // (1 << 31)
    return quotient + 1 if product + nudge < 0 and (product + nudge) % (1 << 31) else quotient


def divided(value: int, exponent: int) -> int:
    """`value` / 2^`exponent`, half away from 0."""
    magnitude = (abs(value) + (1 << exponent >> 1)) >> exponent
    return magnitude if value >= 0 else -magnitude


def scaled(value: int, scale: int, shift: int, early: int) -> int:
    """value * scale / 2^shift of a `value` that the kernel shifts left by `early` before: rounded once if there is no
    second division, else twice."""
    second = shift + early - 31
    if second > 0:
        return divided(high_product(value << early, scale), second)
    return (value * scale + (1 << shift >> 1)) >> shift
