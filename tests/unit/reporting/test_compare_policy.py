"""Policies of `compare`: what they say counts, what they cannot say is refused with its line, whatever the file."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example as hypothesis_example, given, settings, strategies as st

from ethosu_sdk.base import toml_source
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.records import kinds
from ethosu_sdk.reporting.compare import compared_records, policies
from ethosu_sdk.reporting.compare.compared_records import NamedMetric
from tests.records import example
from tests.tables import each

WRONG = {
    "unknown table": ("[metrcs]\n", 1, "did you mean 'metrics'"),
    "unknown member": (
        '# a comment\n\n[metrics."npu.cycles"]\nbetter = "lower"\ntolerence = 1\n',
        5,
        "did you mean 'tolerance'",
    ),
    "unknown word": ('[metrics."npu.cycles"]\nbetter = "lowest"\n', 2, "did you mean 'lower'"),
    "unknown figure": ('allow = []\n[metrics."npu.cylces"]\n', 2, "did you mean 'npu.cycles'"),
    "unknown dimension": (
        'allow = [\n  "model",\n  "verions",\n]\n',
        1,
        "there is no dimension 'verions'",
    ),
    "fidelity": ('allow = ["fidelity"]\n', 1, "never compared"),
    "no list": ("allow = 3\n", 1, "allow must be a list of texts"),
    "list of numbers": ("allow = [3]\n", 1, "allow must be a list of texts"),
    "no table": ('[metrics]\n"npu.cycles" = 3\n', 2, "npu.cycles must be a table"),
    "metrics no table": ("\nmetrics = 3\n", 2, "metrics must be a table"),
    "negative": ('[metrics."npu.cycles"]\ntolerance = -1\n', 2, "must be a number from 0 to 1e+15"),
    "infinite": ('[metrics."npu.cycles"]\ntolerance_percent = inf\n', 2, "must be a number from 0 to 1e+15"),
    "not a number": ('[metrics."npu.cycles"]\ntolerance = nan\n', 2, "must be a number from 0 to 1e+15"),
    "no float holds it": (
        f'[metrics."npu.cycles"]\ntolerance = {"9" * 400}\n',
        2,
        "must be a number from 0 to 1e+15",
    ),
    "true": ('[metrics."npu.cycles"]\ntolerance = true\n', 2, "must be a number from 0 to 1e+15"),
    "text": ('[metrics."npu.cycles"]\ntolerance = "1"\n', 2, "must be a number from 0 to 1e+15"),
    "number for a word": ('[metrics."npu.cycles"]\nmissing = 1\n', 2, "missing cannot be 'int'"),
    "pattern": ('[metrics."npu.[a-z]*"]\n', 1, "is not a pattern of names"),
    "stars": (f'[metrics."{"*a" * 9}"]\n', 1, "is not a pattern of names"),
    "long value": ('a = """\n\n\n"""\n', 1, "a policy has no 'a'"),
    "behind a long value": ("allow = [\n\n\n]\nb = 1\n", 5, "a policy has no 'b'"),
    "operators no table": ("operators = 3\n", 1, "operators must be a table"),
    "operator no table": ('[operators]\n"CONV2D" = 3\n', 2, "CONV2D must be a table"),
    "operator's pattern": ('[operators."CONV 2D"."cycles.*"]\n', 1, "is not a pattern of operators"),
    "operator's place": ('[operators."CONV2D@"."cycles.*"]\n', 1, "is not a pattern of operators"),
    "operator's stars": (f'[operators."{"*a" * 9}"."cycles.*"]\n', 1, "is not a pattern of operators"),
    "operator's figure": ('[operators."*"."cylces.modelled"]\n', 1, "did you mean 'cycles.modelled'"),
    "operator without a figure": (
        '[operators."*"]\ntolerance = 1\n',
        2,
        "'tolerance' must be below a figure of the operators [operators.",
    ),
    "operator's member": (
        '\n[operators."*"."cycles.*"]\ntolerence = 1\n',
        3,
        "did you mean 'tolerance'",
    ),
    "operator's word": ('[operators."*"."macs"]\nbetter = "lowest"\n', 2, "did you mean 'lower'"),
    "operator missing": ('[operators."*"."macs"]\nmissing = "warn"\n', 2, "counts as 0"),
    "operator's rule no table": ('[operators."*"]\n"macs" = 1\n', 2, "macs must be a table"),
    "dotted": ("metrics.x.better = 'lower'\n", 1, "no figure is called 'x'"),
}


@each("name", WRONG)
def test_what_no_policy_can_say_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, line, said = WRONG[name]
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        policies.load_policy(path)
    message = f"{caught.value.message} {caught.value.hint}"
    assert f"policy.toml:{line}: " in message
    assert said in message


@each(
    ("content", "said"),
    [
        (b"\xff", "not UTF-8"),
        (b"a = ", "not TOML"),
        (b"a = 1\na = 2\n", "not TOML"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "not TOML"),
        (b"#" * (33 << 10), "too large"),
        (b"\n" * 1001, "too large"),
    ],
    ids=["bytes", "half", "twice", "nested", "digits", "large", "lines"],
)
def test_damaged_files_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        policies.load_policy(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            ("allow", " = ", '"model"', "metrics", "operators", '"npu.*"', "better", "'lower'", "1")
        )
        | st.sampled_from("[]{}.\n"),
        max_size=40,
    ).map("".join)
)
@hypothesis_example("allow = [[]]")
@hypothesis_example("metrics = {'npu.*' = {better = 'equal'}}")
def test_any_text_is_a_policy_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    try:
        read = policies.load_policy(path)
    except InputError:
        return
    assert set(read.allow) <= set(compared_records.ALLOWED_DIMENSIONS)
    assert read.rule("npu.cycles").better in ("lower", "higher", "equal", "inform")


@given(
    st.lists(
        st.sampled_from(["", "# [x]", "a{} = 1", "b{} = [\n1,\n\n2]", 'c{} = """\nx = 1\n"""']), max_size=30
    ),
    st.lists(st.sampled_from(["", "d{} = 1", "[t{}]\nx = 1"]), max_size=10),
)
def test_the_line_of_a_member_is_found(before: list[str], after: list[str]) -> None:
    above = "".join(f"{row.format(number)}\n" for number, row in enumerate(before))
    below = "".join(f"{row.format(number)}\n" for number, row in enumerate(after))
    text = f"{above}x = [\n3\n]\n{below}"
    assert toml_source.line_of_member(text, ("x",)) == above.count("\n") + 1


def test_later_rules_add_to_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[metrics."npu.*"]\ntolerance = 5\n[metrics."npu.cycles"]\ntolerance_percent = 1\n', encoding="utf-8"
    )
    read = policies.load_policy(path)
    assert read.rule("npu.cycles") == policies.Rule("lower", 5, 1, "fail")
    assert read.rule("npu.counters.MAC_ACTIVE") == policies.Rule("lower", 5, 0, "warn")
    assert read.rule("outputs.0") == policies.default_policy().rule("outputs.0")
    assert read.allowing(["model"]).allow == ("model",)
    with pytest.raises(UsageError, match="never compared"):
        read.allowing(["fidelity"])


def test_the_default_policy_names_every_figure() -> None:
    """A figure that only the first row fits could not be told from one that is misspelt."""

    names = [name for name, _ in policies.default_policy().rules if name != "*"]
    examples = {
        "run-ds_cnn": "run",
        "profile-digits_cnn": "profile",
        "compile-digits_cnn-evaluated": "compile",
    }
    examples |= {"build-ds_cnn": "build", "run-add-timed": "run", "compile-ds_cnn": "compile"}
    for file, kind in examples.items():
        record = example(f"{file}")
        for name in compared_records.metrics_of({kind: kinds.content(record)}):
            assert any(policies.fnmatchcase(name, pattern) for pattern in names), name


numbers = st.integers(0, 10**9) | st.floats(0, 1e9, allow_nan=False)


@given(numbers, numbers, st.sampled_from(["lower", "higher", "equal"]), st.floats(0, 1e3), st.floats(0, 200))
def test_worse_is_what_exceeds_the_larger_tolerance(
    before: float, after: float, better: str, absolute: float, percent: float
) -> None:
    rule = policies.Rule(better, absolute, percent, "fail")
    chosen = policies.Policy("test", "0" * 64, (), (("*", rule),))
    rows = policies.metric_changes({"x": NamedMetric("x", before)}, {"x": NamedMetric("x", after)}, chosen)
    if before == after:
        assert rows == []
        return
    worse = {"lower": after - before, "higher": before - after, "equal": abs(after - before)}[better]
    limit = max(absolute, percent / 100 * before)
    expected = "improved" if worse < 0 else "tolerated" if worse <= limit else "regression"
    assert rows[0].status == expected


@given(
    st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 10**400),
)
def test_numbers_that_no_float_holds_are_compared(before: float, after: int) -> None:
    rows = policies.metric_changes(
        {"x": NamedMetric("x", before)}, {"x": NamedMetric("x", after)}, policies.default_policy()
    )
    assert [row.status for row in rows] == (
        [] if before == after else ["regression" if after > before else "improved"]
    )
    assert all(math.isfinite(row.percent) for row in rows if row.percent is not None)
