"""The rows of what runs on the CPU: the program's kernels, in the order of its instructions."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk import pte
from ethosu_sdk.records import Record
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.run import Operator


def row(
    call: pte.KernelCall, plan: pte.ExecutionPlan, ran: Sequence[Operator], compiled: Compilation | None
) -> Record:
    """A kernel's calls. `ran` are their entries in the run record; `compiled` is the compile record, if there is
    one."""
    name = plan.operators[call.op_index].full_name
    outputs = [value for index in call.args[-1:] if isinstance(value := plan.values[index], pte.Tensor)]
    return {
        "runs_on": "CPU",
        "name": name,
        "kind": "kernel",
        **({"shapes": {"ofm": list(outputs[0].sizes)}} if outputs else {}),
        **({"dtypes": {"ofm": outputs[0].dtype}} if outputs else {}),
        **_origin(name, compiled),
        **summed("instructions", [row.instructions for row in ran]),
        **summed("cpu_cycles", [row.cpu_cycles for row in ran]),
    }


def summed(name: str, figures: Sequence[Metric | None]) -> Record:
    """The member `name` with the sum of the `figures` of all calls; nothing unless each has one."""
    found = [row for row in figures if row is not None]
    if not found or len(found) < len(figures):
        return {}
    return {name: {**found[0].to_json(), "value": sum(row.value for row in found)}}


def _origin(name: str, compiled: Compilation | None) -> Record:
    """Why an operator is on the CPU and its line in the model, where all of its calls have those in common."""
    for operator in compiled.cpu_operators if compiled is not None else ():
        if operator.name == name and len(operator.sites) == 1:
            site = operator.sites[0].to_json()
            return {key: site[key] for key in ("reason", "source") if key in site}
    return {}
