"""The files of `export`: text from facts. What is a bound alone stands in them as a comment, and defines nothing; but
for ExecuTorch's temporary memory, of which no program says more than the scratch that it needs at least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk import __version__, plain_text
from ethosu_sdk.records.export import Library, Size
from ethosu_sdk.steps.export import libraries
from ethosu_sdk.steps.export.sizes import ET_METHOD, ET_TEMP, FAST_SCRATCH, LEAST
from ethosu_sdk.targets import Target


@dataclass(frozen=True)
class Facts:
    """What the files say of a program."""

    model: str
    sha256: str
    target: Target | None
    kernels: Sequence[str]
    libraries: Sequence[Library]
    sizes: Mapping[str, Size]


def _header(facts: Facts) -> Iterator[str]:
    yield f"# {plain_text.line(facts.model)}, SHA-256 {facts.sha256}; by ethosu-sdk {__version__}"


def _defines(facts: Facts, name: str) -> tuple[str, bool]:
    """What is known of the size `name`, on one line, and whether that is a size to define."""
    size = facts.sizes[name]
    # The detail quotes the run's record: a line end in it would end the comment.
    comment = plain_text.line(f"{size.known}: {size.detail}")
    return comment, size.known != LEAST or (name == ET_TEMP and size.bytes > 0)


def _pools(facts: Facts, names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Definition, value (empty where none is known) and comment of each pool by its name in `names`."""
    for size, definition in names.items():
        if size not in facts.sizes or (size == FAST_SCRATCH and facts.sizes[size].bytes == 0):
            continue
        comment, known = _defines(facts, size)
        value = str(facts.sizes[size].bytes)
        yield definition, value if known else "", comment if known else f"at {comment}: {value} bytes"


def cmake(facts: Facts) -> str:
    """Definitions for ExecuTorch's arm_executor_runner, to be read by ``cmake -C``."""
    lines = [*_header(facts), "# cmake -C THIS_FILE -DET_PTE_FILE_PATH=MODEL.pte …", ""]
    if facts.target is not None:
        lines += [
            _cache("ETHOSU_TARGET_NPU_CONFIG", facts.target.name),
            _cache("SYSTEM_CONFIG", facts.target.system_config),
            _cache("MEMORY_MODE", facts.target.memory_mode),
        ]
    lines += libraries.comments(facts.libraries, facts.kernels)
    lines += [_cache(row.option, "ON") for row in facts.libraries if row.option is not None]
    if facts.kernels:
        lines.append(_cache("EXECUTORCH_SELECT_OPS_LIST", ",".join(facts.kernels)))
    names = {
        ET_METHOD: "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
        FAST_SCRATCH: "ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    for definition, value, comment in _pools(facts, names):
        lines += [f"# {comment}", _cache(definition, value) if value else f"# set({definition} … )"]
    return "\n".join([*lines, ""])


def _cache(name: str, value: str) -> str:
    return f'set({name} "{value}" CACHE STRING "")'


def kconfig(facts: Facts) -> str:
    """A fragment for Zephyr's configuration, with the symbols of ExecuTorch's module."""
    lines = [*_header(facts), "CONFIG_EXECUTORCH=y"]
    if facts.target is not None:
        npu = facts.target.name.removeprefix("ethos-").replace("-", "_").upper()
        lines += ["CONFIG_ETHOS_U=y", f"CONFIG_ETHOS_{npu}=y"]
    lines += libraries.comments(facts.libraries, facts.kernels)
    names = {
        ET_METHOD: "CONFIG_EXECUTORCH_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "CONFIG_EXECUTORCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    for definition, value, comment in _pools(facts, names):
        lines += [f"# {comment}", f"{definition}={value}" if value else f"# {definition}=…"]
    return "\n".join([*lines, ""])


def clayer(facts: Facts) -> str:
    """A layer of CMSIS-Toolbox with the definitions that ExecuTorch's runner is compiled with."""
    names = {
        ET_METHOD: "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
        FAST_SCRATCH: "ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    lines = [*_header(facts), "layer:", "  description: pool sizes of ExecuTorch for one program"]
    rows = list(_pools(facts, names))
    if any(value for _, value, _ in rows):
        lines.append("  define:")
    for definition, value, comment in rows:
        lines += [f"    # {comment}", f"    - {definition}: {value}" if value else f"    # - {definition}: …"]
    lines.append("# kernels to select: " + (", ".join(facts.kernels) or "none"))
    lines += libraries.comments(facts.libraries, facts.kernels)
    return "\n".join([*lines, ""])
