"""Without functionalisation, writes through views are lost, and the second link of the chain sees it."""

from pathlib import Path

import pytest

from campaigns.meaning import __main__ as program, grammar
from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import functionalization, pipeline, worker
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

MODELS = Path(program.__file__).with_name("models")
CASES = ("column_assigned", "ring_by_slices", "yolo_head")
# Generated models whose writes reach no view: they are exported without a loss as they are.
UNHARMED = {
    "writes_no_write_an_image_1",
    "writes_activations_in_place_1",
    "writes_assign_by_a_mask_1",
    "writes_an_input_masked_in_place_1",
    *(f"writes_index_{kind}_1" for kind in ("put", "add", "fill", "copy")),
}


class PreparedWithoutLossError(BaseException):
    """The second link holds; what follows it is not asked."""


def _stop(*_: object) -> None:
    raise PreparedWithoutLossError


def test_without_functionalisation_writes_through_views_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functionalization, "without_writes", lambda program: program)
    monkeypatch.setattr(pipeline.quantizing, "convert_module", _stop)
    files = {name: (MODELS / f"{name}.py", "int8") for name in CASES}
    for model in grammar.models(program.COUNT, program.SEED):
        if model.family == "writes" and model.name.endswith("_1") and model.quantize != "none":
            files[model.name] = (tmp_path / f"{model.name}.py", model.quantize)
            files[model.name][0].write_text(model.text, encoding="utf-8")
    lost = {name for name, (file, quantize) in files.items() if _is_lost(file, quantize, tmp_path)}
    assert files.keys() - lost == UNHARMED & files.keys()
    assert len(lost) >= 14


def _is_lost(file: Path, quantize: str, folder: Path) -> bool:
    """Whether the second link, and no other, refuses the model."""
    out = folder / file.stem
    (out / "check").mkdir(parents=True)
    options = ProgramOptions(quantize=quantize, as_written=True)  # rewrites are for graphs without writes
    target = parse_target("ethos-u55-128")
    request = CompileRequest(str(file), target, out, options=options, check_folder=out / "check")
    try:
        worker.run_stages(request, lambda stage: None)
    except VerdictError as error:
        told = ("the graph that is prepared", f"{file.name}, line")
        if not all(text in error.message for text in told):
            raise
        return True
    except (PreparedWithoutLossError, InputError):
        return False
    raise AssertionError("the pipeline went past the second link")
