"""Which model runs on which of the eleven NPU configurations, in the quick set and in the full one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet

from ethosu_sdk.base.targets import target_names
from tests.conformance.models import GROUPS
from tests.conformance.models.case import Case
from tests.conformance.tosa_operators import GRAPHS, NUMERIC

FULL = os.environ.get("ETHOSU_SDK_CONFORMANCE") == "full"

# Profile of TOSA operators → the target that ExecuTorch lowers for.
PROFILES = {"u55": "ethos-u55-128", "u85": "ethos-u85-256"}
TARGETS = {
    "u55": tuple(name for name in target_names() if not name.startswith("ethos-u85")),
    "u85": tuple(name for name in target_names() if name.startswith("ethos-u85")),
}
# The largest first: they are what two processes that share the lowering wait for.
ALL_GROUPS = (*sorted(GROUPS, key=lambda group: -len(GROUPS[group])), NUMERIC)

# Variants that the quick set leaves out, since lowering is what costs time: it has another model of each one's kind.
_VARIANTS = """
    conv_stride_uneven conv_dilated_uneven conv_tall conv_grouped_wide conv_many_outputs conv_transposed_3x3
    conv_asymmetric_padding conv_stride_5x2 conv_1d_stride_8 conv_int16_stride_4 conv_int16_1x1 conv_1d
    depthwise_dilated depthwise_deep depthwise_1d
    depthwise_one_channel depthwise_int16_stride_2 linear_rank_3 linear_int16 linear_int16_wide
    bilinear_form conv_3d_stride sparse_1x1 sparse_linear sparse_int16 ternary_depthwise mostly_zero_linear
    max_pool_batch max_pool_1d average_pool_batch average_pool_large average_pool_adaptive
    average_pool_borders_int16 mean_int16 mean_batch sum_int16 extrema_int16 arg_max_deep arithmetic_batch
    arithmetic_rank_2 broadcast_int16 broadcast_int32 constants_int16 minimum_maximum_int16
    minimum_maximum_int32 prelu_int16 more_activations comparisons_int16 comparisons_int32
    comparisons_broadcast where_int16 where_int32 transpose permutations_large permutations_int16
    permutations_batch flips_int16 slices_int16 paddings_int16 concatenations_int16 concatenations_int32
    shapes channel_shuffle splits pixel_unshuffle nearest_x4 nearest_x8 nearest_x2_int16 bilinear_x3
    bilinear_x2_corners bilinear_half bilinear_deep select_scatter softmax_channels softmax_int16
    log_softmax layer_norm_int16 instance_norm batch_norm vector_norm inverted_residual_int16 attention
    masked_attention attention_int16 fire lstm_step_int16 ds_cnn autoencoder matmul_wide cascade
    cascade_for_size
"""
FULL_ONLY = frozenset(_VARIANTS.split())


def profile_of(target: str) -> str:
    """The profile that a target belongs to."""
    return next(profile for profile, targets in TARGETS.items() if target in targets)


@dataclass(frozen=True)
class Pair:
    """A model on a configuration."""

    group: str
    model: str
    target: str

    def __str__(self) -> str:
        return f"{self.group}-{self.model}-{self.target}"

    @property
    def path(self) -> str:
        """The pair as lower.py takes it."""
        return f"{self.group}/{self.model}/{self.target}"

    @property
    def done(self) -> str:
        """The file that marks its end, from the folder of all."""
        return f"{self.path}.done"

    @property
    def int32_range(self) -> tuple[int, int]:
        """The range of the model's int32 inputs."""
        if self.group == NUMERIC:
            return GRAPHS[self.model].ranges
        return GROUPS[self.group][self.model].int32_range


def cases(group: str, *, full: bool) -> Mapping[str, Case]:
    """The models of a group of GROUPS, or those of them that the quick set has."""
    return {name: case for name, case in GROUPS[group].items() if full or name not in FULL_ONLY}


def models(*, full: bool) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every group and model with its profiles."""
    for group in GROUPS:
        for model, case in cases(group, full=full).items():
            yield group, model, case.profiles
    for model, tie in GRAPHS.items():
        yield NUMERIC, model, tie.profiles


def pairs(*, full: bool) -> list[Pair]:
    """All pairs, or the quick set: one configuration per profile, a different one from model to model."""
    found = []
    for index, (group, model, profiles) in enumerate(models(full=full)):
        for profile in profiles:
            targets = TARGETS[profile]
            chosen = targets if full else (targets[index % len(targets)],)
            found += [Pair(group, model, target) for target in chosen]
    return found


def _spared() -> Iterator[Pair]:
    """Of the quick set's models, every second, and one profile of the others that have two."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(full=False):
        if pair.group != NUMERIC:
            found.setdefault((pair.group, pair.model), []).append(pair)
    for number, row in enumerate(found.values()):
        kept = number // 2 % len(row) if number % 2 == 0 else None
        yield from (pair for place, pair in enumerate(row) if place != kept)


# Of the quick set, pairs that cover the families of operators and of NPUs with three models to lower.
_COVERING = """
    networks/inverted_residual/ethos-u55-32 networks/digits_cnn/ethos-u65-512 networks/mlp/ethos-u85-1024
    numeric/rescale_per_channel_double_round/ethos-u55-128 numeric/convolution_ties/ethos-u55-256
    numeric/add_ties/ethos-u65-256 numeric/table_int16_ties/ethos-u65-256 numeric/depthwise_int16_ties/ethos-u85-128
    numeric/average_3x3_padded/ethos-u85-1024 numeric/arg_max_axis_2/ethos-u85-512
    numeric/bilinear_x4_halves/ethos-u85-512 numeric/select/ethos-u85-128
"""
SMOKE = frozenset(Pair(*path.split("/")) for path in _COVERING.split())


def parameters(chosen: Sequence[Pair]) -> list[ParameterSet]:
    """Pairs as parameters of a test. Lowering is what costs time: tier full has a quarter of the models' pairs."""
    spared = () if FULL else frozenset(_spared())
    assert set(chosen) >= SMOKE

    def marks(pair: Pair) -> list[pytest.MarkDecorator]:
        return [pytest.mark.core] if pair in SMOKE else [pytest.mark.thorough] if pair in spared else []

    return [pytest.param(pair, id=str(pair), marks=marks(pair)) for pair in chosen]
