"""`python -m ethosu_sdk.simulate.fvp_launcher PROGRAM …`: what an installed launcher executes."""

from ethosu_sdk.base import interrupts

interrupts.end_at_once()  # before the other imports, which take longer than all else

import sys  # noqa: E402

from ethosu_sdk.base import plain_text  # noqa: E402
from ethosu_sdk.base.errors import SdkError  # noqa: E402
from ethosu_sdk.simulate.fvp_launcher.launcher import launch  # noqa: E402


def _launch() -> int:
    program, *words = sys.argv[1:]
    try:
        return launch(program, words)
    except SdkError as error:
        sys.stderr.write(plain_text.message(f"{program}: error", error.message))
        if error.hint:
            sys.stderr.write(plain_text.message(f"{program}: hint", error.hint))
        return error.exit_code
    except BrokenPipeError:  # the reader of UART0, which is written without the guard
        return 1


if __name__ == "__main__":
    plain_text.guard_streams()
    interrupts.leave(interrupts.run(_launch))
