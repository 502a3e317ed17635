"""The target that a program was compiled for, read back from what ExecuTorch stores beside each delegate.

ExecuTorch 1.5.1 stores Vela's command-line flags under the key ``compile_flags`` and the accelerator under
``target``. The CONFIG word in the payload, which Vela derives from the accelerator, is the cross-check.
"""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.pte.model import Delegate
from ethosu_sdk.targets import Target, accelerator, parse_name, parse_target
from ethosu_sdk.vela_blocks import VelaBlocks

_FLAGS_KEY = "compile_flags"
_TARGET_KEY = "target"
_VELA_INI = "Arm/vela.ini"  # any other configuration file is the user's, and its names are not in our tables
_HINT = "compile the model again with `ethosu-sdk compile`"


def read_target(delegates: Sequence[Delegate]) -> Target | None:
    """The target of all Ethos-U `delegates`, None when there are none.

    Raises InputError when the flags are missing, contradict the command stream or name what does not exist,
    and when two delegates were compiled for different targets.
    """
    found: Target | None = None
    for index, delegate in enumerate(delegates):
        if delegate.vela is None:
            continue
        target = _delegate_target(delegate, delegate.vela, f"delegates[{index}]")
        if found is not None and target != found:
            raise InputError(
                f"the program was compiled for two targets: {_words(found)}, and {_words(target)}", _HINT
            )
        found = target
    return found


def _words(target: Target) -> str:
    return f"{target.name} with {target.system_config} and {target.memory_mode}"


def _delegate_target(delegate: Delegate, vela: VelaBlocks, where: str) -> Target:
    flags = _flags(delegate, where)
    name = flags["accelerator-config"]
    stored = _text(delegate, _TARGET_KEY, where) if _TARGET_KEY in delegate.compile_specs else name
    compiled = accelerator(vela.config_word)
    if stored != name or compiled != name:
        raise InputError(
            f"{where} contradicts itself: Vela was called for {name!r}, the stored target is {stored!r}, the "
            f"command stream is for {compiled!r}",
            _HINT,
        )
    try:
        config = flags.get("config", _VELA_INI)
        if config == _VELA_INI:
            return parse_target(name, flags["system-config"], flags["memory-mode"])
        family, macs = parse_name(name)
        return Target(family.name, macs, flags["system-config"], flags["memory-mode"], config)
    except UsageError as error:
        raise InputError(f"{where}: {error.message}", error.hint) from error


def _flags(delegate: Delegate, where: str) -> dict[str, str]:
    """Vela's flags with a value. A later one overrides an earlier one, as in Vela itself."""
    flags: dict[str, str] = {}
    for word in _text(delegate, _FLAGS_KEY, where).split():
        name, separator, value = word.partition("=")
        if separator:
            flags[name.removeprefix("--")] = value
    for name in ("accelerator-config", "system-config", "memory-mode"):
        if not flags.get(name):
            raise InputError(f"{where} does not record Vela's --{name}", _HINT)
    return flags


def _text(delegate: Delegate, key: str, where: str) -> str:
    try:
        return delegate.compile_specs[key].decode("utf-8")
    except KeyError:
        raise InputError(f"{where} has no compile specification '{key}'", _HINT) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the compile specification '{key}' is not text", _HINT) from error
