"""Files that PyPI packages carry inside, such as pretrained weights, and what building a zoo model gives."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import ToolError


@dataclass(frozen=True)
class ZooModel:
    """A built zoo model: an ``nn.Module`` in eval mode, its example inputs (a tuple of tensors) and the
    calibration samples (each such a tuple)."""

    module: Any
    example_inputs: tuple[Any, ...]
    calibration: tuple[tuple[Any, ...], ...]


# Nothing of these packages is imported. Their requirements conflict with the torch that ExecuTorch needs
# (facenet-pytorch: torch below 2.3, NumPy below 2) or are large (torchcrepe: librosa, torchaudio), so they are
# installed without them: an extra of this project could not say that, a ``pip install --no-deps`` can.

# distribution → the version that `pip install` is told
_VERSIONS = {"facenet-pytorch": "2.6.0", "pillow": "13.0.0", "scikit-image": "0.26.0", "torchcrepe": "0.0.24"}


@dataclass(frozen=True)
class PackagedFile:
    """A file of an installed distribution: its path below site-packages, and the only content that is accepted."""

    distribution: str
    path: str
    sha256: str


def requirements(distributions: Iterable[str] = tuple(_VERSIONS)) -> tuple[str, ...]:
    """`distributions` as pip takes them, with their versions; scikit-learn's is that of the extra `compile`."""
    return tuple(f"{name}=={_VERSIONS[name]}" if name in _VERSIONS else name for name in distributions)


def install_command(distributions: Iterable[str] = tuple(_VERSIONS)) -> str:
    """The command that installs `distributions`, without what they require."""
    return f"pip install --no-deps {' '.join(requirements(distributions))}"


def require(what: str, distributions: Iterable[str]) -> None:
    """ToolError, that tells how to install all of them, when `what` needs a distribution that is not there."""
    wanted = tuple(distributions)
    lacking = missing(wanted)
    if lacking:
        raise ToolError(
            f"{what} needs Python packages that are not installed: {', '.join(lacking)}",
            install_command(wanted),
        )


def missing(distributions: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in distributions if not _is_installed(name))


def locate(file: PackagedFile) -> Path:
    """Where `file` is on this machine. ToolError when its distribution, or this very content, is not there."""
    require(file.path, (file.distribution,))
    distribution = importlib.metadata.distribution(file.distribution)
    path = Path(str(distribution.locate_file(file.path)))
    if not path.is_file() or filesystem.sha256_file(path) != file.sha256:
        raise ToolError(
            f"{file.distribution} {distribution.version} does not have the {file.path} that the zoo needs",
            install_command((file.distribution,)),
        )
    return path


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
