"""What makes a compilation another one: a program of other options is not taken for it."""

from pathlib import Path

from ethosu_sdk.steps.compile.compile_command import compile_key
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.targets import parse_target


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
    )
    target = parse_target("ethos-u55-128")
    keys = [compile_key("zoo:digits_cnn", row, target) for row in options]
    assert len(set(keys)) == len(keys)
    assert compile_key("zoo:digits_cnn", CompileOptions(inputs=same), target) == keys[1]
