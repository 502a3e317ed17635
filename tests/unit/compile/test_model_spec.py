"""The MODEL argument: every form, and every way to get it wrong."""

from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError, SdkError, UsageError
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec, parse_model_spec
from tests.tables import each


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "a:b model.py"
    path.write_text("")
    return path


@pytest.mark.parametrize("name", ["add", "softmax", "digits_cnn", "ds_cnn", "mobilenet_v2"])
def test_zoo_name(name: str) -> None:
    assert name in zoo.names()
    assert parse_model_spec(f"zoo:{name}") == ModelSpec("zoo", None, name)
    assert zoo.source(name).is_file()


def test_files_with_and_without_a_name(model_file: Path, tmp_path: Path) -> None:
    assert parse_model_spec(str(model_file)) == ModelSpec("python", model_file, None)
    assert parse_model_spec(f"{model_file}:Net") == ModelSpec("python", model_file, "Net")
    path = tmp_path / "net.pt2"
    path.write_bytes(b"")
    assert parse_model_spec(str(path)) == ModelSpec("pt2", path, None)


def test_a_folder_is_named_for_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "net.pt2"
    folder.mkdir()
    (folder / "saved_model.pb").write_text("")
    with pytest.raises(InputError, match="is a TensorFlow SavedModel, not a model that can be compiled"):
        parse_model_spec(str(folder))


def test_output_name_is_safe_in_every_tool(model_file: Path) -> None:
    assert parse_model_spec(f"{model_file}:Net").name == "a_b_model"
    assert ModelSpec("python", Path("..py"), None).name == "model"


@each(
    ("text", "error", "words"),
    [
        ("zoo:mobilnet_v2", UsageError, "mobilenet_v2"),
        ("zoo:", UsageError, "zoo has no model"),
        ("net.h5", UsageError, "net.h5"),
        ("absent.onnx", InputError, "absent.onnx"),
        ("", UsageError, "not a model"),
        ("absent.py", InputError, "absent.py"),
        ("absent.py:Net", InputError, "absent.py"),
        ("absent.pt2", InputError, "absent.pt2"),
        ("net.pt2:main", UsageError, "main"),
        ("net.py:1abc", UsageError, "1abc"),
        ("net.py:", UsageError, "not a Python name"),
    ],
)
def test_what_is_refused(text: str, error: type[SdkError], words: str) -> None:
    with pytest.raises(error) as caught:
        parse_model_spec(text)
    assert words in caught.value.message + caught.value.hint
    assert caught.value.hint
