"""What can go wrong in the NPU model."""

from __future__ import annotations

from ethosu_sdk.errors import InputError, SimulationError


class UnsupportedCommand(SimulationError):  # noqa: N818 - named for what it is about
    """A command or field value that hardware executes and this model does not (yet).

    `name` is the register or operation, `offset` its byte offset in the command stream, `value` what it held.
    """

    def __init__(self, name: str, offset: int, value: int, reason: str = "") -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(
            f"the NPU model does not support {name} = {value:#x} at byte {offset} of the command stream{detail}",
            "this is a limit of the model, not of the program",
        )
        self.name = name
        self.offset = offset
        self.value = value


class CommandError(InputError):
    """A word of the command stream that no Ethos-U command has (STATUS.cmd_parse_error on hardware)."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset} of the command stream")
        self.offset = offset


class BusError(InputError):
    """An access outside a memory region (STATUS.bus_status on hardware)."""


class WeightStreamError(InputError):
    """A weight stream that does not decode to exactly the weights that the operation needs."""
