"""The `quantizer` of a model's file: what is accepted, and what is said of the rest."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.compile.quantizers import OwnQuantizer, find_quantizer

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
PATH = Path("net.py")


def test_a_file_without_one_and_a_function_that_returns_something_else() -> None:
    assert find_quantizer(SimpleNamespace(), PATH) is None
    with pytest.raises(InputError, match="returned a int, not a Quantizer"):
        OwnQuantizer(lambda q: 7, PATH).applied(object(), None)


@pytest.mark.parametrize("value", [3, "int8", list])
def test_something_else_of_that_name(value: object) -> None:
    with pytest.raises(InputError, match="neither a Quantizer nor a function"):
        find_quantizer(SimpleNamespace(quantizer=value), PATH)


def test_options_that_it_contradicts() -> None:
    own = OwnQuantizer(lambda q: q, PATH)
    own.refuse_options(ProgramOptions(quantize="int16", quantize_per="tensor"), prequantized=False)
    with pytest.raises(UsageError, match=r"--quantize none contradicts net\.py"):
        own.refuse_options(ProgramOptions(quantize="none"), prequantized=False)
    with pytest.raises(UsageError, match="quantised already"):
        own.refuse_options(ProgramOptions(), prequantized=True)


def test_a_function_that_fails_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("\n\ndef quantizer(q):\n    return q.no_such_name\n")
    namespace: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with pytest.raises(InputError, match=r"failed at line 4: AttributeError"):
        OwnQuantizer(namespace["quantizer"], path).applied(object(), None)
