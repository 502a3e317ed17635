"""Data files (`.ptd`) of two programs that ExecuTorch 1.5.1 wrote: read, damaged, mixed up.

`split` has its weights and biases in a file each, `ethos_u55_128_two` the commands and the weights of its delegate.
"""

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import named_data, pte
from ethosu_sdk.program.execution_plan import Tensor
from tests.places import GOLDEN_PTD
from tests.tables import each

PLAIN = (GOLDEN_PTD / "split.pte", (GOLDEN_PTD / "weights.ptd", GOLDEN_PTD / "biases.ptd"))
DELEGATED = (GOLDEN_PTD / "ethos_u55_128_two.pte", (GOLDEN_PTD / "fast.ptd", GOLDEN_PTD / "slow.ptd"))
# Where the words of the header stand.
TABLES_AT, TABLES_BYTES_AT, BASE_AT, SEGMENT_BYTES_AT = 16, 24, 32, 40
Change = Callable[[bytearray], None]


def tensors(program: pte.Pte) -> dict[str, np.ndarray]:
    rows = (row for row in program.plan().values if isinstance(row, Tensor) and row.external_name)
    return {
        row.external_name: np.frombuffer(row.data, row.dtype).reshape(row.sizes)
        for row in rows
        if row.data is not None
    }


def test_tensors_have_the_models_values() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    layers = {"a": torch.nn.Linear(6, 5), "b": torch.nn.Linear(5, 4)}
    expected = {
        f"{name}.{kind}": value.detach().numpy()
        for name, layer in layers.items()
        for kind, value in layer.named_parameters()
    }
    program = pte.read(*PLAIN)
    program.check_data()
    found = tensors(program)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert [row.path.name for row in program.data_files] == ["weights.ptd", "biases.ptd"]


def test_a_delegate_gets_the_blocks_that_its_keys_name() -> None:
    program = pte.read(*DELEGATED)
    (delegate,) = program.delegates
    assert delegate.vela is not None
    content = {path.stem: named_data.read_data_file(path).blobs for path in DELEGATED[1]}
    ((_, commands),), ((_, weights),) = content["fast"].items(), content["slow"].items()
    assert bytes(delegate.vela.command_data) == bytes(commands.data)
    assert bytes(delegate.vela.weights) == bytes(weights.data)
    assert program.npu() == "ethos-u55"


def test_files_beside_the_program_are_found_by_its_name(tmp_path: Path) -> None:
    shutil.copy(PLAIN[0], tmp_path / "net.pte")
    shutil.copy(PLAIN[1][0], tmp_path / "net.weights.ptd")
    shutil.copy(PLAIN[1][1], tmp_path / "net_biases.ptd")
    shutil.copy(DELEGATED[1][0], tmp_path / "net_other.ptd")  # nothing that the program wants
    shutil.copy(DELEGATED[1][1], tmp_path / "other.ptd")
    program = pte.read(tmp_path / "net.pte")
    program.check_data()
    assert [(row.path.name, row.is_found) for row in program.data_files] == [
        ("net.weights.ptd", True),
        ("net_biases.ptd", True),
    ]
    shutil.copy(PLAIN[1][0], tmp_path / "net.again.ptd")
    with pytest.raises(InputError, match=r"data 'a.weight' is in .*net.again.ptd and .*net.weights.ptd"):
        pte.read(tmp_path / "net.pte")


def test_files_of_another_program_are_not_taken(tmp_path: Path) -> None:
    """They can hold tensors of the same names and shapes, which nothing could tell apart."""
    shutil.copy(PLAIN[0], tmp_path / "net.pte")
    shutil.copy(PLAIN[0], tmp_path / "net_large.pte")
    shutil.copy(PLAIN[1][0], tmp_path / "net2.ptd")
    shutil.copy(PLAIN[1][0], tmp_path / "net_large.ptd")
    shutil.copy(PLAIN[1][1], tmp_path / "net_large-biases.ptd")
    (tmp_path / "net.ptd").mkdir()
    with pytest.raises(InputError, match=r"data 'a.bias' and 3 more is not in the program"):
        pte.read(tmp_path / "net.pte").check_data()
    assert len(pte.read(tmp_path / "net_large.pte").data_files) == 2


@each(
    ("program", "files", "message"),
    [
        (PLAIN[0], PLAIN[1][:1], r"data 'a.bias' and 1 more is not in the program"),
        (DELEGATED[0], DELEGATED[1][:1], r"block 'weight_data' with the key '\w{64}' is not in the program"),
        (PLAIN[0], (*PLAIN[1], DELEGATED[1][0]), r"uses nothing of .*fast.ptd: it holds '\w{64}'"),
        (DELEGATED[0], PLAIN[1], r"block 'cmd_data' with the key"),
        (PLAIN[0], (GOLDEN_PTD / "none.ptd",), r"none.ptd"),
        (PLAIN[0], (PLAIN[0],), r"split.pte"),
    ],
)
def test_wrong_files_are_refused_by_name(program: Path, files: tuple[Path, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        pte.read(program, files).check_data()
    assert caught.value.hint or "there is no file" in caught.value.message


def changed(tmp_path: Path, source: Path, change: Change) -> Path:
    content = bytearray(source.read_bytes())
    change(content)
    path = tmp_path / source.name
    path.write_bytes(content)
    return path


def put(at: int, code: str, value: int) -> Change:
    return lambda data: struct.pack_into(f"<{code}", data, at, value)


def test_every_changed_byte_of_a_delegates_block_is_noticed(tmp_path: Path) -> None:
    for source in DELEGATED[1]:
        (blob,) = named_data.read_data_file(source).blobs.values()
        others = [path for path in DELEGATED[1] if path != source]
        for at in range(blob.offset, blob.offset + len(blob.data), 7):

            def flip(data: bytearray, at: int = at) -> None:
                data[at] ^= 0x10

            with pytest.raises(InputError, match="was changed: its SHA-256"):
                pte.read(DELEGATED[0], [changed(tmp_path, source, flip), *others])


def test_names_with_a_zero_byte_or_of_any_length(tmp_path: Path) -> None:
    """The firmware's runtime would read less of it than the SDK, and could take another tensor."""
    content = PLAIN[1][0].read_bytes()
    assert content.count(b"a.weight") == 1
    with pytest.raises(InputError, match=r"named_data\[\d\].key has a zero byte before its end"):
        named_data.parse_data_file(content.replace(b"a.weight", b"a\0weight"))
    blobs = {"k" * 1_000_000: named_data.Blob(0, memoryview(b""))}
    other = named_data.DataFile(tmp_path / "other.ptd", "", blobs, memoryview(b""))
    with pytest.raises(InputError, match=r"uses nothing of .*other\.ptd: it holds 'k{100}…'"):
        pte.parse(PLAIN[0].read_bytes(), [*map(named_data.read_data_file, PLAIN[1]), other])


def test_a_tensor_of_another_form_is_refused(tmp_path: Path) -> None:
    content = PLAIN[1][0].read_bytes()
    sizes = content.index(struct.pack("<Iii", 2, 5, 6)) + 4  # of a.weight
    other = changed(tmp_path, PLAIN[1][0], lambda data: struct.pack_into("<ii", data, sizes, 6, 5))
    with pytest.raises(
        InputError, match=r"'a.weight' .* is float32\[5, 6\] of 120 bytes, but .* float32\[6, 5\]"
    ):
        pte.read(PLAIN[0], [other, PLAIN[1][1]])


@each(
    "change",
    [
        pytest.param(put(8, "I", 0), id="magic"),
        pytest.param(put(12, "I", 39), id="header too short"),
        pytest.param(put(TABLES_AT, "Q", 47), id="tables within the header"),
        pytest.param(put(TABLES_AT, "Q", (1 << 64) - 16), id="tables that wrap around"),
        pytest.param(put(TABLES_BYTES_AT, "Q", 1 << 40), id="tables past the end"),
        pytest.param(put(BASE_AT, "Q", 64), id="segments within the tables"),
        pytest.param(put(BASE_AT, "Q", 1 << 63), id="segments past the end"),
        pytest.param(put(SEGMENT_BYTES_AT, "Q", (1 << 64) - 1), id="segments that wrap around"),
        pytest.param(put(SEGMENT_BYTES_AT, "Q", 100), id="segments too short for theirs"),
        pytest.param(put(0, "I", 0xFFFF_FFF0), id="root past the end"),
        pytest.param(put(0, "I", 2), id="root within the head"),
    ],
)
def test_hostile_offsets_are_refused(tmp_path: Path, change: Change) -> None:
    for source in (*PLAIN[1], *DELEGATED[1]):
        with pytest.raises(InputError, match=r"\.ptd"):
            named_data.read_data_file(changed(tmp_path, source, change))


@pytest.mark.parametrize("path", [*PLAIN[1], *DELEGATED[1]], ids=lambda path: str(path.stem))
def test_every_truncation_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for end in range(len(content)):
        with pytest.raises(InputError):
            named_data.parse_data_file(content[:end])


@pytest.mark.parametrize("path", [*PLAIN[1], *DELEGATED[1]], ids=lambda path: str(path.stem))
def test_a_damaged_file_is_refused_or_read_within_its_bytes(path: Path) -> None:
    generator = random.Random(path.name)
    content = path.read_bytes()
    head = content.index(b"\0" * 16, 72)  # where the tables end, roughly
    refused = 0
    for _ in range(4000):
        data = bytearray(content)
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(head)] = generator.choice(
                [0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)]
            )
        try:
            found = named_data.parse_data_file(data)
        except InputError:
            refused += 1
        else:
            for blob in found.blobs.values():
                assert 0 <= blob.offset <= blob.offset + len(blob.data) <= len(data)
    assert refused > 1000, "hardly anything is refused: the checks cannot be at work"


def test_blocks_without_a_recorded_tag_are_taken_as_they_are() -> None:
    """Nothing else says what a key is the digest of."""
    from ethosu_sdk.program import named_data

    blob = named_data.Blob(0, memoryview(b"weights"))
    named_data.check_block("weight_data", "0" * 64, blob, {})
    named_data.check_block("weight_data", "0" * 64, blob, {"external_block_placements": b"no JSON"})
    tag = json.dumps({"weight_data": "w"}).encode()
    with pytest.raises(InputError, match="was changed"):
        named_data.check_block("weight_data", "0" * 64, blob, {"external_block_placements": tag})
