"""The network, looked into once for all of these tests."""

import pytest

from tests.integration.debug.networks import MODEL, Seen, debug


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The network as it is, for Ethos-U55."""
    folder = tmp_path_factory.mktemp("debug")
    (folder / "net.py").write_text(MODEL, encoding="utf-8")
    return debug("net.py", folder, "--advice", "45")
