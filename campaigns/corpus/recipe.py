"""How an architecture becomes a model: seeded weights that look trained, inputs, calibration samples."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from campaigns.corpus import packages

Maker = Callable[[int, int], tuple[Tensor, ...]]  # seed, batch → inputs
Build = Callable[[], tuple[nn.Module, Maker]]
CALIBRATION_SEEDS, EXAMPLE_SEED, EVALUATION_SEEDS = range(1, 9), 0, range(101, 105)
_SETTLE_SEEDS, _SETTLE_BATCH = range(1001, 1004), 4
_UNTRAINED = 1e-3  # norms and layer scales that start below this have a branch switched off


@dataclass(frozen=True)
class Architecture:
    """One entry of the corpus: `file` and `name` are what `compile` is given."""

    name: str
    package: str
    task: str
    file: str
    build: Build


REGISTRY: dict[str, Architecture] = {}


def architecture(package: str, task: str) -> Callable[[Build], Callable[[], Any]]:
    """Enter a function in the corpus under its own name.

    The function returns a module and the maker of its inputs, and imports its package itself. What it is replaced
    with is for the SDK: without arguments, it returns the settled module, with calibration samples, and example
    inputs.
    """

    def enter(build: Build) -> Callable[[], Any]:
        name = build.__name__.removesuffix("_")
        REGISTRY[name] = Architecture(name, package, task, build.__code__.co_filename, build)

        @functools.wraps(build)
        def model() -> tuple[nn.Module, tuple[Tensor, ...]]:
            module, make = made(build)
            samples = [make(seed, 1) for seed in CALIBRATION_SEEDS]
            module.calibration_inputs = samples  # type: ignore[assignment]
            return module, make(EXAMPLE_SEED, 1)

        return model

    return enter


def made(build: Build) -> tuple[nn.Module, Maker]:
    """The module, settled, and the maker of its inputs."""
    packages.prepare()
    torch.manual_seed(0)
    module, make = build()
    _wake(module)
    return settle(module, make), make


def _wake(module: nn.Module) -> None:
    """Give parameters that start as one constant values as training would: biases and norms that differ from
    channel to channel, and residual branches that start at zero a part in the result."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            value = float(parameter.flatten()[0])
            if parameter.numel() < 2 or not bool((parameter == value).all()):
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias") or parameter.dim() > 2:
                parameter.copy_(value + 0.05 * noise)
            else:
                parameter.copy_((value if abs(value) > _UNTRAINED else 0.5) * (1 + 0.2 * noise.clamp(-2, 2)))


def settle(module: nn.Module, make: Maker) -> nn.Module:
    """Give BatchNorm running statistics that fit the random weights: a plain mean over a few batches."""
    module.eval()
    norms = [norm for norm in module.modules() if isinstance(norm, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        for seed in _SETTLE_SEEDS if norms else ():
            module(*make(seed, _SETTLE_BATCH))
    return module.eval().requires_grad_(requires_grad=False)


def image(channels: int, height: int, width: int | None = None) -> Maker:
    """Pictures as a normalised photograph is: smooth, with some noise."""
    size = (height, width or height)

    def make(seed: int, batch: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        coarse = torch.randn(batch, channels, *(max(side // 8, 1) for side in size), generator=generator)
        smooth = nn.functional.interpolate(coarse, size=size, mode="bilinear", align_corners=False)
        return (1.2 * smooth + 0.1 * torch.randn(smooth.shape, generator=generator),)

    return make


def unit_image(channels: int, side: int) -> Maker:
    """Pictures with values from 0 to 1, as restoration networks take them."""
    normalised = image(channels, side)
    return lambda seed, batch: (torch.sigmoid(normalised(seed, batch)[0]),)


def signal(length: int, channels: int = 1) -> Maker:
    """A few sines and some noise on each channel: [batch, channels, length]."""

    def make(seed: int, batch: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        time = torch.linspace(0, 1, length)
        waves = torch.zeros(batch, channels, length)
        for _ in range(3):
            pitch = 1 + 20 * torch.rand(batch, channels, 1, generator=generator)
            phase = 6.28 * torch.rand(batch, channels, 1, generator=generator)
            waves += torch.rand(batch, channels, 1, generator=generator) * torch.sin(
                6.28 * pitch * time + phase
            )
        return (waves + 0.05 * torch.randn(waves.shape, generator=generator),)

    return make


def last(maker: Maker) -> Maker:
    """The same signal with time before channels: [batch, length, channels]."""
    return lambda seed, batch: (maker(seed, batch)[0].transpose(1, 2).contiguous(),)


def flat(maker: Maker) -> Maker:
    """The same signal without its channels: [batch, length]."""
    return lambda seed, batch: (maker(seed, batch)[0].flatten(1),)


def tokens(length: int, vocabulary: int) -> Maker:
    """Indices of words."""

    def make(seed: int, batch: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        return (torch.randint(0, vocabulary, (batch, length), generator=generator),)

    return make


class Returning(nn.Module):
    """A module whose forward gives what `pick` takes out of the output of `inner`: tensors alone."""

    def __init__(self, inner: nn.Module, pick: Callable[[Any], Any]) -> None:
        super().__init__()
        self.inner = inner
        self.pick = pick

    def forward(self, *inputs: Tensor) -> Any:
        """The tensors of interest."""
        return self.pick(self.inner(*inputs))
