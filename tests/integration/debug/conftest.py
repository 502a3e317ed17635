"""The network, looked into once for all of these tests."""

import pytest

from tests.conftest import KeptFolder
from tests.integration.debug.networks import MODEL, Seen, kept_seen


@pytest.fixture(scope="session")
def whole(kept_folder: KeptFolder) -> Seen:
    """The network as it is, for Ethos-U55."""
    return kept_seen(kept_folder, "net", MODEL, "", "--advice", "45")
