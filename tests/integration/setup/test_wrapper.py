"""ethosu-sdk-docker: what the engine is asked for. The engine is a double here; tests/container runs the real one."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.tables import each

WRAPPER = ROOT / "ethosu-sdk-docker"
# A double of docker: an image `there`, and each word of `run` on a line of its own.
DOCKER = """#!/bin/sh
case $1 in
image) [ "$3" = there ] ;;
version) [ -z "${DOCKER_IS_DOWN:-}" ] ;;
--version) echo "${DOCKER_IS:-Docker} version 20" ;;
run) for word; do printf '%s\\n' "$word"; done ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a place"
    folder.mkdir()
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    return folder


def run(place: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{place.parent}:/usr/bin:/bin", "HOME": str(place.parent), **settings}
    return subprocess.run(
        [WRAPPER, *words],
        cwd=place,
        env={"ETHOSU_SDK_IMAGE": "there", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_words_of_the_caller_arrive_behind_the_image_as_they_are(place: Path) -> None:
    words = ["run", "my model.pte", "$HOME", "*", "--name=it's", "-v", ""]
    asked = run(place, *words).stdout.split("\n")[:-1]
    assert asked[asked.index("there") + 1 :] == words


def test_the_container_sees_the_working_folder_and_nothing_else(place: Path) -> None:
    asked = run(place, "doctor").stdout.splitlines()
    options = asked[: asked.index("there")]
    mounts = [options[at + 1] for at, word in enumerate(options) if word == "-v"]
    assert mounts == [f"{place}:{place}", f"{place.parent}/.cache/ethosu-sdk-container:/tmp/ethosu-sdk"]
    assert (place.parent / ".cache" / "ethosu-sdk-container").is_dir()
    assert options[options.index("-w") + 1] == str(place)
    assert options[options.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"
    for wanted in ("--network none", "--cap-drop ALL", "--security-opt no-new-privileges", "--rm"):
        assert wanted in shlex.join(options)
    assert "-t" not in options  # no terminal here


def test_settings_of_the_caller_reach_the_container(place: Path) -> None:
    (place / "f w").mkdir()
    settings = {
        "NO_COLOR": "1",
        "ETHOSU_SDK_FIRMWARE": "f w",
        "ETHOSU_SDK_ENGINE_ARGS": "-v /data/*:/data:ro",
    }
    asked = run(place, "doctor", **settings).stdout.splitlines()
    options = asked[: asked.index("there")]
    assert {"NO_COLOR=1", "ETHOSU_SDK_FIRMWARE=/firmware", f"{place}/f w:/firmware:ro"} <= set(options)
    assert options[-2:] == ["-v", "/data/*:/data:ro"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ETHOSU_SDK_IMAGE": "absent"}, "there is no image absent"),
        ({"ETHOSU_SDK_IMAGE": "absent", "DOCKER_IS_DOWN": "1"}, "docker does not answer"),
        ({"PATH": "/nowhere"}, "neither docker nor podman"),
    ],
)
def test_what_is_missing_is_named_with_a_hint(place: Path, settings: dict[str, str], said: str) -> None:
    done = run(place, "doctor", **settings)
    assert done.returncode == 4
    assert said in done.stderr
    assert "hint: " in done.stderr


def test_a_folder_that_cannot_be_mounted_is_refused(place: Path) -> None:
    colon = place / "a:b"
    colon.mkdir()
    done = run(colon, "doctor", PATH=f"{place.parent}:/usr/bin:/bin")
    assert (done.returncode, "has a colon" in done.stderr) == (4, True)


def mounted(place: Path, **settings: str) -> list[str]:
    """What the container gets of folders, and nothing is said."""
    done = run(place, "doctor", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    words = f"\n{done.stdout}".split("\n-v\n")[1:]
    return [word.split("\n-w\n")[0].split("\n-e\n")[0].split("\nthere\n")[0] for word in words]


@each(
    ("name", "settings"),
    [
        ("cache", {"CDPATH": "elsewhere"}),
        ("-", {}),
        ("-", {"OLDPWD": "/"}),
        ("-P", {}),
        ("ends\n", {}),
        ("\n\n", {}),
    ],
)
def test_a_folder_of_any_name_is_the_one_that_is_meant(
    name: str, settings: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    place = tmp_path / "work"
    for folder in (place / "elsewhere" / name, place / f"{name}f"):
        folder.mkdir(parents=True)
    found = mounted(place, ETHOSU_SDK_CACHE=name, ETHOSU_SDK_FIRMWARE=f"{name}f", **settings)
    assert f"{place}/{name}:/tmp/ethosu-sdk" in found
    assert f"{place}/{name}f:/firmware:ro" in found
    assert (place / name).is_dir()


def test_a_working_folder_whose_name_ends_with_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    place = tmp_path / "work\n"
    place.mkdir()
    assert f"{place}:{place}" in mounted(place, ETHOSU_SDK_CACHE=".")
    assert f"{place}:/tmp/ethosu-sdk" in mounted(place, ETHOSU_SDK_CACHE=".")


def test_a_folder_that_is_missing_is_named(place: Path) -> None:
    done = run(place, "doctor", ETHOSU_SDK_FIRMWARE="none")
    assert (done.returncode, done.stderr.splitlines()[-2]) == (4, "error: there is no folder none")
