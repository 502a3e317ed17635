"""The look-up of all composite operators of the C++ dispatcher, which torch.export makes for every decomposition.

It looks each operator up by name, once for each of some forty name spaces (torch/_export/utils.py of torch 2.13.0),
which takes a fifth of the time of lowering. It only fills ``torch.ops``: with an unchanged list it does nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def looked_up_once() -> Iterator[None]:
    """Look the composite operators up when their list has changed, and not otherwise, in the block."""
    import torch
    from torch._export import utils

    look_up = utils._materialize_cpp_cia_ops
    seen: list[str] = []

    def look_up_changed() -> None:
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        if registered != seen:
            look_up()
            seen[:] = registered

    utils._materialize_cpp_cia_ops = look_up_changed
    try:
        yield
    finally:
        utils._materialize_cpp_cia_ops = look_up
