"""Files of installed packages, which are not imported: that takes seconds."""

import configparser
import importlib.util
from pathlib import Path


def folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    (found, *_) = spec.submodule_search_locations or ()
    return Path(found)


def vela_ini() -> configparser.ConfigParser:
    """Vela's own configuration file."""
    parser = configparser.ConfigParser()
    assert parser.read(folder("ethosu") / "config_files" / "Arm" / "vela.ini")
    return parser
