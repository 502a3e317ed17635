"""The command lines of what judges finished records, or tells of them."""

from ethosu_sdk.cli.records import (  # noqa: F401, I001 - their order is the help's
    compare,
    advise,
    validate,
    summary,
)
