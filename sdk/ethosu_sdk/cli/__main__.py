"""`python -m ethosu_sdk.cli`."""

from ethosu_sdk.cli.entry import main

main()
