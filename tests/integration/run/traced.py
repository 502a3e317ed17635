"""Run `ethosu-sdk` with the arguments behind the first one, a file that gets the modules of the SDK which it enters.

They stand there in the order in which one of their functions is first called, in the main thread of this process.
What a module calls while it is imported does not count.
"""

import sys
from pathlib import Path
from types import FrameType

_ROOT = "ethosu_sdk."
entered: dict[str, None] = {}


def note(frame: FrameType, event: str, _: object) -> None:
    """Note the module of a function that is called."""
    name = frame.f_globals.get("__name__") or ""
    if event == "call" and name.startswith(_ROOT) and name not in entered and not is_importing(frame):
        entered[name] = None


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module of the SDK is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and f"{frame.f_globals.get('__name__')}.".startswith(_ROOT):
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Run the command, and write the list also if it fails."""
    names, *arguments = sys.argv[1:]
    sys.argv = ["ethosu-sdk", *arguments]
    from ethosu_sdk.cli import entry

    sys.setprofile(note)
    try:
        entry.main()
    finally:
        sys.setprofile(None)
        Path(names).write_text("".join(f"{name.removeprefix(_ROOT)}\n" for name in entered), encoding="utf-8")


if __name__ == "__main__":
    main()
