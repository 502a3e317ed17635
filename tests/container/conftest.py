"""The images under test, and containers that may do nothing but work on the folder they are given."""

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = os.environ.get("ETHOSU_SDK_IMAGE", "ethosu-sdk")  # its tags are the targets of the Dockerfile
# Programs of another processor than the host's, as scripts/container-test --platform starts them, take their time.
SLOWNESS = 4 if "DOCKER_DEFAULT_PLATFORM" in os.environ else 1
# Where torch's CPU build was out of reach, scripts/container-test puts another in its place and mounts what it needs.
STAND_IN_LOCK = os.environ.get("ETHOSU_SDK_STAND_IN_LOCK")
MOUNTS = tuple(shlex.split(os.environ.get("ETHOSU_SDK_TEST_MOUNTS", "")))
# What was built: the tests of other images are left out.
TARGETS = tuple(os.environ.get("ETHOSU_SDK_IMAGE_TARGETS", "slim full").split())
STRANGER = 12345  # a user id that neither the image nor the host has heard of
# As docs/getting-started/container.md recommends: no network, no rights, nothing to write but /work and /tmp.
LOCKED_DOWN = (
    *("--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges", "--pids-limit", "256", "--memory", "3g"),
)


@dataclass(frozen=True)
class Outcome:
    """How a container ended and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Container:
    """A container that runs."""

    id: str

    def stop(self, patience_s: int) -> int:
        """`docker stop`; the exit status, 137 when it had to be killed after `patience_s`."""
        subprocess.run(["docker", "stop", "-t", str(patience_s), self.id], check=True, capture_output=True)
        command = ["docker", "inspect", "--format", "{{.State.ExitCode}}", self.id]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@dataclass(frozen=True)
class Image:
    """One target of the Dockerfile, as the engine holds it."""

    name: str

    def inspect(self, template: str) -> str:
        """What `docker image inspect` says by a Go template."""
        command = ["docker", "image", "inspect", "--format", template, self.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def run(
        self,
        *arguments: str,
        work: Path | None = None,
        options: Sequence[str] = (),
        user: int = STRANGER,
        stdin: str = "",
        timeout_s: float = 240 * SLOWNESS,
    ) -> Outcome:
        """`docker run` with `arguments` for the entry point, locked down, as `user`; `work` is mounted at /work."""
        command = ["docker", "run", "--rm", "-i", *self._words(arguments, work, options, user)]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def started(
        self, *arguments: str, work: Path, options: Sequence[str] = (), user: int = STRANGER
    ) -> Iterator[Container]:
        """The same in the background; the container is removed at the end."""
        command = ["docker", "run", "-d", *self._words(arguments, work, options, user)]
        container = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield Container(container)
        finally:
            subprocess.run(["docker", "rm", "--force", container], check=True, capture_output=True)

    def _words(
        self, arguments: Sequence[str], work: Path | None, options: Sequence[str], user: int
    ) -> list[str]:
        mount = () if work is None else ("-v", f"{work}:/work")
        words = (*LOCKED_DOWN, "--user", f"{user}:{user}", *MOUNTS, *mount, *options)
        return [*words, self.name, *arguments]

    def script(self, interpreter: str, text: str, *arguments: str, **options: object) -> Outcome:
        """Run a script of the host's with the image's `interpreter`."""
        return self.run(
            "-s" if interpreter == "sh" else "-",
            *arguments,
            options=("--entrypoint", interpreter),
            stdin=text,
        )


def _needs_full(item: pytest.Item) -> bool:
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "full" in (*getattr(item, "fixturenames", ()), *parameters)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "full" not in TARGETS:
        left_out = [item for item in items if _needs_full(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _image(target: str) -> Image:
    image = Image(f"{REPOSITORY}:{target}")
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    present = subprocess.run(["docker", "image", "inspect", image.name], capture_output=True, check=False)
    if present.returncode:
        pytest.skip(f"no image {image.name}: scripts/container-test builds it")
    return image


@pytest.fixture(scope="session")
def slim() -> Image:
    """The image without torch."""
    return _image("slim")


@pytest.fixture(scope="session")
def full() -> Image:
    """The image with `compile`."""
    return _image("full")


@pytest.fixture(scope="session")
def wheel() -> Image:
    """A Debian with the SDK's wheel in an empty environment."""
    return _image("wheel")


@pytest.fixture(params=["slim", "full"])
def image(request: pytest.FixtureRequest) -> Image:
    """Both images, one after the other."""
    found: Image = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder that STRANGER owns, for /work."""
    folder = tmp_path / "work"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    return folder
