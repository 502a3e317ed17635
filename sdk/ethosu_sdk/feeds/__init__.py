"""Feeds: which outputs of one step of a sequence become inputs of the next.

:mod:`syntax` reads them, :mod:`choosing` has the arithmetic of the forms that choose, with the same bits as the
firmware's, and :mod:`stepping` makes the inputs of each step.
"""

from ethosu_sdk.feeds.syntax import ARGMAX, COPY, SAMPLE, STEP, Feed, parse

__all__ = ["ARGMAX", "COPY", "SAMPLE", "STEP", "Feed", "parse"]
