"""Archives that two readers could take for different things, and expressions that are more than arithmetic."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import saved_program
from ethosu_sdk.compile.saved_program import UnsafeError
from tests.tables import each


def zipped(*names: str, method: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as target:
        for name in names:
            target.writestr(zipfile.ZipInfo(name), b"content of " + name.encode(), method)
        target.comment = comment
    return stream.getvalue()


def changed(data: bytes, offset: int, new: bytes) -> bytes:
    offset %= len(data)
    return data[:offset] + new + data[offset + len(new) :]


GOOD = zipped("net/a", "net/b")
DIRECTORY = GOOD.index(b"PK\x01\x02")


def two_of_one_name(data: bytes) -> bytes:
    return data.replace(b"net/b", b"net/a")


@each(
    ("data", "words"),
    [
        pytest.param(b"", "end record", id="nothing"),
        pytest.param(GOOD[:-1], "end record", id="cut off"),
        pytest.param(GOOD + b"x", "end record, or bytes follow", id="something behind"),
        pytest.param(b"x" + GOOD, "inserted before or after", id="something before"),
        pytest.param(GOOD + GOOD, "inserted before or after", id="two archives"),
        pytest.param(zipped("net/a", comment=b"x" * 22), "end record", id="comment"),
        pytest.param(zipped("net/a", method=zipfile.ZIP_DEFLATED), "compressed", id="compressed"),
        pytest.param(two_of_one_name(GOOD), "two members 'net/a'", id="two of one name"),
        pytest.param(zipped("net/a", "net/A"), "two members 'net/A'", id="two of one name but for case"),
        pytest.param(zipped("net/../a"), "not allowed", id="a path that leaves"),
        pytest.param(zipped("/a"), "not allowed", id="an absolute path"),
        pytest.param(zipped("net/a/"), "not allowed", id="a folder"),
        pytest.param(changed(GOOD, GOOD.index(b"net/a"), b"net/x"), "local header", id="another local name"),
        pytest.param(changed(GOOD, 14, b"1234"), "local header", id="another local CRC"),
        pytest.param(changed(GOOD, 18, b"\0\0\0\0"), "local header", id="another local size"),
        pytest.param(changed(GOOD, 6, b"\1"), "local header", id="encrypted, the local header says"),
        pytest.param(changed(GOOD, DIRECTORY + 8, b"\1"), "encrypted", id="encrypted, the directory says"),
        pytest.param(changed(GOOD, DIRECTORY + 24, b"\1"), "compressed", id="another size"),
        pytest.param(changed(GOOD, DIRECTORY + 42, b"\1"), "does not begin where", id="another place"),
        pytest.param(changed(GOOD, -12, b"\1"), "more than one part", id="another count"),
        pytest.param(changed(GOOD, -14, b"\1\0\1\0"), "lists 2", id="both counts"),
    ],
)
def test_an_archive_that_is_ambiguous(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(data)
    with pytest.raises(InputError, match="is not a well-formed ZIP archive") as caught:
        saved_program.read_saved_program(tmp_path / "net.pt2", trust=False)
    assert words in caught.value.message
    assert saved_program.read_saved_program(tmp_path / "net.pt2", trust=True) == data


def test_an_archive_that_is_not() -> None:
    assert {name: bytes(data) for name, data in saved_program.archive_members(GOOD).items()} == {
        "net/a": b"content of net/a",
        "net/b": b"content of net/b",
    }


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("net/archive_format", "other/models/model.json"), "outside of the archive's folder"),
        (("net/archive_format", "net/DATA/constants/opaque_obj_0"), "torch.export.save writes no member"),
        (("net/archive_format", "net/data/sample_inputs/model.pt"), "not a plain file of torch.save"),
        (("version", "serialized_constants.pt"), "not a plain file of torch.save"),
        (("version", "run.py"), "torch.export.save writes no member"),
    ],
)
def test_members_of_other_kinds(names: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(zipped(*names))
    with pytest.raises(InputError, match="because it could run code") as caught:
        saved_program.read_saved_program(tmp_path / "net.pt2", trust=False)
    assert words in caught.value.message


@each(
    ("check", "text"),
    [
        *(
            (saved_program.check_symbolic, text)
            for text in (
                "__import__('os').system('true')",
                "s0.__class__",
                "(lambda: 1)()",
                "[s0 for s0 in (1,)]",
                "exec('s0')",
                "Symbol('s0').func",
                "Add(Symbol('os'), 1)",
                "Function('f')(s0)",
                "sympify('s0')",
                "f'{s0}'",
                "(s0 := 1)",
                "Max(*s0)",
                "Symbol('s0', **s1)",
                "s0 + \nprint()",
                "s0 # ",
                "\uff530",
                "2**10000000",
                "s0**10000000",
                "LShift(1, 10000000)",
                "1" * 5000,
                "(" * 5000,
                "",
            )
        ),
        *(
            (saved_program.check_guard, text)
            for text in (
                "L['x'].__class__",
                "L['x'].numpy() == 1",
                "L['x\\'].size()[0] == 1",
                "L['x'].size().__len__() == 1",
                "open('x')",
                "math.__loader__",
                "torch.load('x')",
                "size()",
            )
        ),
    ],
)
def test_an_expression_that_is_more_than_arithmetic(check: Callable[[str], None], text: str) -> None:
    with pytest.raises(UnsafeError):
        check(text)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (
            saved_program.check_symbolic,
            "Max(1, TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s97')))))",
        ),
        (saved_program.check_symbolic, "2*s0 + (s1//2)**2 - Mod(u0, 3)"),
        (
            saved_program.check_symbolic,
            "Piecewise(ExprCondPair(Integer(1), Eq(Symbol('s0', integer=True), oo)))",
        ),
        (saved_program.check_guard, "((4*L['a'].size()[0]) % (L['flat_args'][0].size()[0] // 2)) == 0"),
        (saved_program.check_guard, "math.trunc(1.5*torch.sym_float(L['a'].size()[1])) <= max(1, L['n'])"),
    ],
)
def test_an_expression_that_is_arithmetic(check: Callable[[str], None], text: str) -> None:
    check(text)


@each(
    "program",
    [
        {"metadata": {"as_operator": "torch.os.system"}},
        {
            "graph_module": {
                "graph": {"nodes": [{"inputs": [{"arg": {"metadata": {"target": "torch.os.system"}}}]}]}
            }
        },
        {"graph_module": {"signature": {"input_specs": [{"as_string": "' + x + '"}]}}},
        {"later": {"unknown": 'a"b'}},
        {"custom_obj_values": {"a": {}}},
        {"in_spec": '[1, {"type": "collections.defaultdict", "context": "null", "children_spec": []}]'},
        {"in_spec": "[1, 2]"},
        {"tensor_values": {"a'": {}}},
    ],
)
def test_a_text_of_the_program_that_is_not_plain(program: dict[str, object]) -> None:
    with pytest.raises(UnsafeError, match=r"model\.json"):
        saved_program.check_graph("model.json", program)


@each(
    "pickle",
    [
        b"cos\nsystem\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"(S'true'\nios\nsystem\n.",
        b"ctorch._utils\n_rebuild\n.",
        b"ctorch\nload\n.",
        b"\x82\x01.",
        b"cos",
    ],
)
def test_a_pickle_of_more_than_tensors(pickle: bytes) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        target.writestr("archive/DATA.PKL", pickle)
    with pytest.raises(UnsafeError, match=r"the pickle archive/DATA\.PKL in weights"):
        saved_program.check_pickle("weights", memoryview(stream.getvalue()))
