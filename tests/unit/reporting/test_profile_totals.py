"""What `profile` says of an inference: a time is for the program's own system, or no headline."""

import json
from typing import Any

from ethosu_sdk.records import kinds, profile_words
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.reporting.pages import run_rows
from tests.records import example

CAVEAT = "for Ethos_U85_SYS_DRAM_Mid, not the system you compiled for"


def _profile(**changes: Any) -> Profile:
    record = example("profile-digits_cnn")
    record["priced"].update(changes)
    return kinds.PROFILE.convert(record)


def _cycles(profile: Profile) -> list[str]:
    return [text for name, text in profile_words.total_rows(profile) if name == "NPU cycles"]


def _reported(profile: Profile) -> str:
    return json.dumps(run_rows.source_rows(profile))


def test_cycles_of_the_programs_system_have_a_time_beside_them() -> None:
    profile = _profile()
    assert profile.headline == profile.totals.speed
    assert all(" ms, " in text and "inferences/s" in text for text in _cycles(profile))
    rows = list(profile_words.total_rows(profile))
    assert "Ethos_U85_SYS_DRAM_Mid with Dedicated_Sram_384KB (vela.ini of" in dict(rows)["system"]
    assert not any(CAVEAT in text for _, text in rows)
    assert " ms" in _reported(profile)


def test_cycles_of_another_system_have_none() -> None:
    profile = _profile(compiled_for=False)
    assert profile.headline == ()
    assert _cycles(profile)
    assert not any("ms" in text or "inferences/s" in text for text in _cycles(profile))
    assert ("not comparable", CAVEAT) in list(profile_words.total_rows(profile))
    assert " ms" not in _reported(profile)
    timed = [text for name, text in profile_words.total_rows(profile) if " ms, " in text]
    assert all(text.endswith(CAVEAT) for text in timed)


def test_an_estimate_names_its_vela() -> None:
    record = example("profile-digits_cnn")
    record["provenance"]["tools"].append({"name": "ethos-u-vela", "version": "9.8.7"})
    texts = _cycles(kinds.PROFILE.convert(record))
    assert [text for text in texts if "(estimated by Vela 9.8.7)" in text]
    assert not any("by Vela" in text for text in texts if "(modelled" in text)
