"""A decoder's quantised model in PyTorch, in a process of its own: torch stays out of the test process.

Usage: child.py MODEL TOKEN,… COUNT. MODEL is quantised as `compile` does it. Prints as JSON: the tokens that it
chooses greedily, the smallest margin of a choice in standard deviations of its logits, the share of steps in which
the float model makes the same choice for the same tokens, and its mean cross entropy on all tokens (`scored`).
"""

import json
import sys
from pathlib import Path

import torch

from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import lowering, pipeline, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.front_ends import loading
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.graphs import execution
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.pipeline import StageClock


def main(name: str, prompt: str, count: str) -> None:
    """Quantise the model and let it go on with the prompt."""
    worker.import_tools()
    target = parse_target("ethos-u85-256", memory_mode="Dedicated_Sram_512KB")
    request = CompileRequest(name, target, Path())
    (plan,) = pipeline.plans_of(request, loading.load_model(parse_model_spec(name), trust=True))
    spec, clock = lowering.compile_spec(target, lowering.VELA_CONFIG, ()), StageClock(lambda *_: None)
    traced = pipeline.traced_method(request, plan, clock, SourceFinder(None, plan.lines))
    (method,) = pipeline.quantised_methods(request, [traced], spec, clock)
    quantised, state = method.subject.quantised_module, method.traced.state
    tokens, margins = [int(word) for word in prompt.split(",")], []
    with torch.no_grad(), state.restored(quantised):
        for place in range(len(tokens) + int(count) - 1):
            logits = execution.run_eager(quantised, _step(tokens, place))[0].reshape(-1)
            if place + 1 == len(tokens):
                largest = logits.topk(2)
                margins.append(float((largest.values[0] - largest.values[1]) / logits.std()))
                tokens.append(int(largest.indices[0]))
    made = tokens[-int(count) :]
    with torch.no_grad():
        # In eval mode, and with the caches that it has now: positions from 0 on hide them.
        rows = torch.cat(
            [plan.module(*_step(tokens, place)).reshape(1, -1) for place in range(len(tokens) - 1)]
        )
    choices = rows.argmax(-1).tolist()
    loss = float(torch.nn.functional.cross_entropy(rows, torch.tensor(tokens[1:])))
    agree = sum(one == other for one, other in zip(choices[-len(made) :], made, strict=True)) / len(made)
    found = {"tokens": made, "margin": min(margins), "agrees_with_float": agree}
    print(json.dumps({**found, "scored": tokens, "nll": loss}))


def _step(tokens: list[int], place: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([[tokens[place]]]), torch.tensor([place])


if __name__ == "__main__":
    main(*sys.argv[1:])
