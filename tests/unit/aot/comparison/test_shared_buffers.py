"""Buffers of one storage are one state only where their bytes overlap."""

import pytest

pytestmark = pytest.mark.torch


def test_halves_of_a_tensor_share_nothing_and_views_do() -> None:
    import torch

    from ethosu_sdk.aot.model import shared_buffers
    from ethosu_sdk.errors import InputError

    class Net(torch.nn.Module):
        def __init__(self, one: torch.Tensor, other: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("one", one)
            self.register_buffer("other", other)

    whole = torch.zeros(2, 8)
    written = ["one", "other"]
    assert shared_buffers.settled(Net(*whole.unbind(0)), written, lambda _: None) == written
    assert shared_buffers.settled(Net(whole, whole), written, lambda _: None) == ["other"]
    with pytest.raises(InputError, match="'one' and 'other' share memory"):
        shared_buffers.settled(Net(whole, whole[1:]), written, lambda _: None)
    with pytest.raises(InputError, match="share memory"):
        shared_buffers.settled(Net(whole[:, :5], whole[:, 3:]), written, lambda _: None)
