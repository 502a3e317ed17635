"""`sbom` against CycloneDX's own schema and this machine's packages; `scripts/licences`; `summary`."""

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from ethosu_sdk.installation import sbom_command
from ethosu_sdk.installation.sbom_command import DebianPackage, PythonDistribution
from ethosu_sdk.reporting import summary_command
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.own_qemu import VARIABLE
from tests.places import ROOT
from tests.records import read

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
PYTHON = PythonDistribution(
    "some-lib", "1.2+cpu", "It does.", "", ("MIT License",), ("ethosu-sdk", "absent>=2")
)
DEBIAN = DebianPackage("libc6", "2.36-9", "amd64", "glibc", "2.36-9", ("GPL-2+", "LGPL-2.1+"))


def dpkg(*arguments: str) -> str:
    return subprocess.run(["dpkg-query", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sbom")
    sdk_ok("sbom", "-o", "sbom.json", cwd=folder)
    value = read(folder / "sbom.json")
    assert isinstance(value, dict)
    return value


def test_it_is_cyclonedx(document: dict[str, Any]) -> None:
    assert document["specVersion"] == "1.6"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None
    document = {**document, "components": [{"name": "no type"}]}
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is not None


def test_it_lists_what_pip_and_dpkg_list(document: dict[str, Any]) -> None:
    found = {(row["purl"].split("/")[0], row["name"], row["version"]) for row in document["components"]}
    versions = {
        name: importlib.metadata.version(name) for name in ("torch", "numpy", "ethos-u-vela", "flatbuffers")
    }
    assert found >= {("pkg:pypi", name, version) for name, version in versions.items()}
    lines = dpkg("-W", "-f", "${db:Status-Status} ${Package} ${Version}\n").splitlines()
    installed = {("pkg:deb", *line.split()[1:]) for line in lines if line.startswith("installed ")}
    assert {row for row in found if row[0] == "pkg:deb"} == installed
    by_name = {row["name"]: row for row in document["components"]}
    assert by_name["gcc-arm-none-eabi"]["licenses"]


def test_qemu_of_our_own_build_is_listed(own_qemu: Path, tmp_path: Path) -> None:
    outcome = sdk("sbom", cwd=tmp_path, env={VARIABLE: str(own_qemu)})
    content = json.loads(outcome.out)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(outcome.out) is None
    (row,) = [row for row in content["components"] if row["name"] == "qemu-corstone"]
    assert row["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(own_qemu.read_bytes()).hexdigest()}]
    assert row["licenses"] == [{"license": {"id": "GPL-2.0-only"}}]
    (sdks,) = [entry for entry in content["dependencies"] if entry["ref"].startswith("pkg:pypi/ethosu-sdk@")]
    assert row["bom-ref"] in sdks["dependsOn"]


def test_every_component_has_a_licence_or_says_why_not(document: dict[str, Any]) -> None:
    for row in document["components"]:
        names = [entry["name"] for entry in row.get("properties", ())]
        assert ("licenses" in row) != ("ethosu-sdk:licence:unknown" in names), row["name"]


def test_arms_runners_have_their_own_licence(document: dict[str, Any]) -> None:
    (package,) = [row for row in document["components"] if row["name"] == "mlia-ethos-u"]
    assert {row["type"] for row in package["components"]} == {"firmware"}
    for row in package["components"]:
        place = f"mlia/resources/backends/applications/{row['name']}/mlek_inference_runner.axf"
        runner = Path(str(importlib.metadata.distribution("mlia-ethos-u").locate_file(place)))
        assert hashlib.sha256(runner.read_bytes()).hexdigest() == row["hashes"][0]["content"]
        stated = runner.with_suffix(".axf.license").read_text(encoding="utf-8").upper()
        for name in row["licenses"][0]["expression"].split(" AND "):
            assert name.upper() in stated.split("SPDX-LICENSE-IDENTIFIER:")[1]


def test_dependencies_are_components(document: dict[str, Any]) -> None:
    refs = {row["bom-ref"] for row in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    assert {row["ref"] for row in document["dependencies"]} == refs
    graph = {
        row["ref"].split("@")[0]: {ref.split("@")[0] for ref in row["dependsOn"]}
        for row in document["dependencies"]
    }
    assert graph["pkg:pypi/jsonschema"] >= {"pkg:pypi/attrs", "pkg:pypi/referencing"}


def test_the_same_packages_give_the_same_bytes() -> None:
    first = sbom_command.make_sbom([PYTHON], [DEBIAN])
    assert json.dumps(sbom_command.make_sbom([PYTHON], [DEBIAN])) == json.dumps(first)
    assert "timestamp" not in first["metadata"]
    assert first["serialNumber"] != sbom_command.make_sbom([PYTHON], [])["serialNumber"]
    assert sbom_command.make_sbom([PYTHON], [DEBIAN], "2026-01-01T00:00:00+00:00")["metadata"][
        "timestamp"
    ].startswith("2026")
    library = next(row for row in first["components"] if row["name"] == "some-lib")
    assert (library["purl"], library["licenses"]) == (
        "pkg:pypi/some-lib@1.2%2Bcpu",
        [{"license": {"id": "MIT"}}],
    )


def test_time_comes_from_source_date_epoch_alone(tmp_path: Path) -> None:
    outcome = sdk("sbom", cwd=tmp_path, env={"SOURCE_DATE_EPOCH": "1700000000"})
    assert json.loads(outcome.out)["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert_clear(sdk("sbom", cwd=tmp_path, env={"SOURCE_DATE_EPOCH": "soon"}), 2, "SOURCE_DATE_EPOCH")


def test_licences_of_a_copyright_file(tmp_path: Path) -> None:
    path = tmp_path / "copyright"
    path.write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
        "Files: *\nLicense: GPL-2+\n text\n\nFiles: x\nLicense: Expat\n"
    )
    assert sbom_command._debian_licences(path) == ("Expat", "GPL-2+")
    path.write_text("This is free software.\nLicense: who knows\n")
    assert sbom_command._debian_licences(path) == ()
    assert sbom_command._debian_licences(tmp_path / "missing") == ()


def test_licence_texts_are_collected(tmp_path: Path) -> None:
    target = tmp_path / "licences"
    argv = [sys.executable, ROOT / "scripts" / "licences", target]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (target / "debian" / "qemu-system-arm").read_bytes() == Path(
        "/usr/share/doc/qemu-system-arm/copyright"
    ).read_bytes()
    assert any("numpy" in path.parent.name for path in (target / "python").rglob("*LICENSE*"))
    assert (target / "common-licenses" / "GPL-3").is_file()
    assert not [
        line for line in (target / "missing.txt").read_text().splitlines() if line.startswith("debian: ")
    ]
    again = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (again.returncode, "exists" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run-ds_cnn", "| NPU cycles | 283,627 per inference (modelled) |"),
        ("run-ds_cnn", "| board | the board of ethos-u55 (qemu is installed here) |"),
        ("run-add-timed", "| second opinion | executorch evaluation kit 25.12.0 |"),
        ("build-ds_cnn", "| DDR |"),
        ("compile-ds_cnn", "| delegate 0: total cycles | 107,121 | cycles | estimated |"),
        (
            "compile-ds_cnn",
            r"| aten::avg\_pool2d.out | 1 | `Avgpool2d with padding needs kernel dims < 8, got",
        ),
        ("compile-digits_cnn-evaluated", "| quantised → executed | 100.00% agree | equal | 1.000000 | 0 |"),
        ("compile-digits_cnn-evaluated", "| pass | 0.985, at least 0.9 (--min-top1) |"),
        ("compile-add", "| on the CPU | nothing |"),
        ("verify", "| elf | differs | 0123456789abcdef | ffffffffffffffff |"),
        ("doctor", "| cmake | found | 3.25.1 | build |"),
        (
            "profile-digits_cnn",
            "| NPU cycles | 7,957 (modelled): 0.008 ms, 125,675.5 inferences/s, 0.020 Tops/s |",
        ),
        (
            "profile-digits_cnn",
            "| conv2d | 3,190 cycles | 19 % | NPU | digits.py:55 (3) |",
        ),
        ("error", "| exit code |"),
    ],
)
def test_summaries_of_records(name: str, words: str) -> None:
    text = summary_command.markdown(read(EXAMPLES / f"{name}.json"))
    assert text.startswith("### ")
    assert words in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    assert all(line.endswith("|") for line in tables)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b_*[l](x).pte", r"a\|b\_\*\[l\](x).pte"),
        ("a|b`<img src=x>`\n[l](x)_*.pte", "``a|b`<img src=x>` [l](x)_*.pte``"),
        ("`@team`", "`` `@team` ``"),
        ("see https://example.org/x", "`see https://example.org/x`"),
        ("\x1b[2J\u202egnp.pte", r"\\x1b\[2J\\u202egnp.pte"),
    ],
)
def test_a_models_name_is_no_markup(name: str, shown: str) -> None:
    record = read(EXAMPLES / "run-ds_cnn.json")
    record["model"]["file"] = name
    assert summary_command.markdown(record).splitlines()[0] == f"### ✅ run: {shown}"


def test_a_bar_in_code_parts_no_cells() -> None:
    record = read(EXAMPLES / "error.json")
    record["error"]["message"] = "@a | b"
    assert r"| message | `@a \| b` |" in summary_command.markdown(record)


def test_summary_refuses_what_it_has_no_words_for(tmp_path: Path) -> None:
    refused = sdk("summary", EXAMPLES / "zoo.json", cwd=tmp_path)
    assert_clear(refused, 3, "zoo-list/1, which has no summary", "compile-result/1, run-result/1")
    assert_clear(sdk("summary", EXAMPLES / "error.json", "--format", "markdwon", cwd=tmp_path), 2, "markdown")
    assert_clear(sdk("summary", "missing.json", cwd=tmp_path), 3, "missing.json")
