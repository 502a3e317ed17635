"""What Corstone-320 has beside what tests/integration/qemu/scenarios asks of both boards."""

import dataclasses

import pytest

from ethosu_sdk.simulators.qemu.simulator import QemuSimulator
from tests.integration.qemu.conftest import RequestFor
from tests.integration.qemu.firmware.build import Scenario

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def test_memory_is_laid_and_read_back(request_for: RequestFor, simulator: QemuSimulator) -> None:
    """In SRAM as well, by both aliases."""
    request = request_for(Scenario.EXIT, 5)
    read_back = ((0x7000_0000, 4), (0x3100_0000, 4), (0x2100_0000, 4))
    images = (*request.images, (0x3100_0000, b"sram"))
    result = simulator.run(dataclasses.replace(request, images=images, read_back=read_back))
    assert result.exit_code == 5
    assert result.memory == (bytes(4), b"sram", b"sram")
