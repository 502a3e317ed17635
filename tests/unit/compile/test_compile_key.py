"""What makes a compilation another one: a program of other options is not taken for it."""

from pathlib import Path

import pytest

from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import compile_command
from ethosu_sdk.compile.compile_command import compile_key
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.program_options import CompileOptions


def test_a_file_counts_by_what_it_is_for(tmp_path: Path) -> None:
    """`run --calibration F` must not run what `compile --inputs F` calibrated on other samples."""
    file, same = tmp_path / "a.npz", tmp_path / "b.npz"
    for path in (file, same):
        path.write_bytes(b"samples")
    options = (
        CompileOptions(),
        CompileOptions(inputs=file),
        CompileOptions(calibration=(file,)),
        CompileOptions(vela_config=file),
        CompileOptions(inputs=file, calibration=(file,)),
        CompileOptions(system="alif-e7-hp"),
        CompileOptions(system="alif-e8-hp"),
    )
    target = parse_target("ethos-u55-128")
    keys = [compile_key("zoo:digits_cnn", row, target) for row in options]
    assert len(set(keys)) == len(keys)
    assert compile_key("zoo:digits_cnn", CompileOptions(inputs=same), target) == keys[1]


def test_a_board_profile_counts_by_its_values(tmp_path: Path) -> None:
    file, target = tmp_path / "ours.toml", parse_target("ethos-u55-256")
    keys = []
    for hertz in (200, 300, 200):
        file.write_text(f'like = "alif-e8-hp"\nnpu_hz = {hertz}_000_000\n')
        keys.append(compile_key("zoo:add", CompileOptions(system=str(file)), target))
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    ("model", "options", "folder"),
    [
        ("zoo:add", CompileOptions(), "add-ethos-u55-128"),
        ("zoo:add", CompileOptions(target="ethos-u85-256"), "add-ethos-u85-256"),
        ("zoo:add", CompileOptions(quantize="int16"), "add-ethos-u55-128-int16"),
        ("zoo:add", CompileOptions(memory_mode="Shared_Sram"), "add-ethos-u55-128"),  # the default, by name
        (
            "zoo:add",
            CompileOptions(memory_mode="Sram_Only", io="int8"),
            "add-ethos-u55-128-Sram_Only-int8-io",
        ),
        ("zoo:add", CompileOptions(system="alif-e8-hp"), "add-ethos-u55-256-alif-e8-hp"),
        ("zoo:add", CompileOptions(vela_flags=("--optimise=Size",)), "add-ethos-u55-128-optimise_Size"),
        ("net.py", CompileOptions(check=False, etrecord=True), "net-ethos-u55-128"),
        ("net.py:small", CompileOptions(as_written=True), "net-small-ethos-u55-128-as-written"),
        ("net.py:large", CompileOptions(target="cortex-m55"), "net-large-cortex-m55"),
    ],
)
def test_each_program_has_a_folder_of_its_own(
    model: str, options: CompileOptions, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("", encoding="utf-8")
    spec, target = parse_model_spec(model), compile_command.target_of(options)
    assert compile_command.output_folder(spec, target, options, None) == Path("build") / folder
    assert compile_command.output_folder(spec, target, options, tmp_path / "o") == tmp_path / "o"
