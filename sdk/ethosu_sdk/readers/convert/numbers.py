"""Numbers of records as text: a record may hold whole numbers that no float holds."""

from __future__ import annotations


def text(value: float, form: str) -> str:
    """`value` in the format `form` of floats; all of its digits where it is too large for one."""
    try:
        return format(float(value), form)
    except OverflowError:
        return str(value)
