"""The `ethosu-sdk` command, and `python -m ethosu_sdk`: it takes charge of signals, then imports the command line."""

from ethosu_sdk.base import interrupts


def main() -> None:
    """Entry point of the `ethosu-sdk` command."""
    interrupts.end_at_once()
    from ethosu_sdk.cli.entry import run

    interrupts.leave(run())


if __name__ == "__main__":
    main()
