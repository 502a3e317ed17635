"""Damaged command streams and weights: on the NPU model, and inside of programs that are run."""

import functools
import random
import signal

import numpy as np

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe, TooSlow
from campaigns.attack.kinds import programs
from campaigns.fuzz.campaign import Seed, run_sample, seed_of
from campaigns.fuzz.mutations import Sample, mutations
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte
from tests.pte_files import golden

_NAMES = ("add_u55", "conv_u65_int8", "add_u85_segment")


@functools.cache
def _seed(name: str) -> Seed:
    return seed_of(bytes(pte.parse(golden(name)).delegates[0].payload))


def _probe(context: Context, choice: random.Random) -> Probe:
    generator = np.random.default_rng(choice.getrandbits(63))
    seed, other = _seed(choice.choice(_NAMES)), _seed(choice.choice(_NAMES))
    ways, given = mutations(seed.config.generation), seed.sample
    for _ in range(generator.integers(1, 4)):
        if given.commands:
            given = ways[int(generator.integers(len(ways)))](generator, given, other.sample)
    stream, weights = given.stream, given.weights.tobytes()
    title = f"stream for {seed.config.npu}-{seed.config.macs}"
    return Probe(title, {"stream.bin": stream, "weights.bin": weights}, lambda _: _run(seed, given))


def _run(seed: Seed, given: Sample) -> None:
    previous = signal.getsignal(signal.SIGPROF)
    signal.signal(signal.SIGPROF, _too_slow)
    try:
        outcome = run_sample(seed, given)
    finally:
        signal.signal(signal.SIGPROF, previous)
    if outcome != "result":
        raise InputError(outcome)


def _too_slow(*_: object) -> None:
    raise TooSlow("the NPU model takes too long")


def _case(context: Context, choice: random.Random) -> Case:
    name = choice.choice(("add_u55", "conv_u65_int8"))
    data = bytearray(golden(name))
    delegate = pte.parse(bytes(data)).delegates[0]
    start, end = delegate.payload_offset, delegate.payload_offset + len(delegate.payload)
    payload = choice.choice((damage.flip, damage.words))(choice, bytes(data[start:end]))
    data[start:end] = payload
    return programs.expected_run(context, choice, bytes(data), name, choice.choice(("host", "host", "qemu")))


KIND = Kind("streams", _case, _probe)
