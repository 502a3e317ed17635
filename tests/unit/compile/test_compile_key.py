"""What makes a compilation another one: a program of other options is not taken for it."""

from pathlib import Path

from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile.compile_command import compile_key
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
