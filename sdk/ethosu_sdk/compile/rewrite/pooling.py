"""Poolings beyond the limits of Ethos-U55 and Ethos-U65, as operators that the NPU takes."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice


def _mean(x: Any, kernel_size: Any, *_: Any) -> Any:
    """One value of each channel: the mean of what the only window sees."""
    height, width = kernel_size if len(kernel_size) == 2 else (kernel_size[0], kernel_size[0])
    return x[:, :, :height, :width].mean((2, 3), keepdim=True)


def _choose_average(node: Any, goal: Goal) -> Function | None:
    del goal
    made, padding = node.meta["val"], node.args[3] if len(node.args) > 3 else (0,)
    is_plain = not any(padding) and not any(node.args[4:5]) and (len(node.args) < 7 or node.args[6] is None)
    return _mean if is_plain and tuple(made.shape[2:]) == (1, 1) else None


MEAN_CHOICES: dict[str, GoalChoice] = {"aten.avg_pool2d.default": _choose_average}
