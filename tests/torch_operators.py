"""Faster lowering for tests that lower hundreds of models in a process.

Every decomposition of an exported program makes torch.export look up all composite operators of the C++ dispatcher by
name, once for each of some forty name spaces (torch/_export/utils.py of torch 2.13.0). The look-up only fills
``torch.ops``; with an unchanged list of operators it does nothing, for a fifth of the time that lowering takes.
"""

from __future__ import annotations


def look_up_once() -> None:
    """Let this process look the composite operators up when their list has changed, and not otherwise."""
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
