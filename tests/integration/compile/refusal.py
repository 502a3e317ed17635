"""Compilations that are refused, in this process: torch is imported once for all of them."""

import pytest

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileRequest


def refusal(request: CompileRequest) -> SdkError:
    """The error that ends a compilation: with one line of a message, and nothing in the folder, which is made."""
    request.out_dir.mkdir()
    with pytest.raises(SdkError) as caught:
        worker.run_stages(request, lambda stage: None)
    assert list(request.out_dir.iterdir()) == []
    assert "\n" not in caught.value.message
    return caught.value
