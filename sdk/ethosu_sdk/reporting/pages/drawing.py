"""The libraries that draw a page: an optional part of the installation, which is asked for by name."""

from __future__ import annotations

import functools

from ethosu_sdk.base import cache, filesystem, tools
from ethosu_sdk.base.errors import SdkError, ToolError

_SNIPPET = "window.vegaEmbed = vegaEmbed;"  # what the bundle is asked to make known
_INSTALL = "install them with the SDK: pip install 'ethosu-sdk[report]'"


def require_drawing() -> None:
    """ToolError when a library is missing, or when those that are there do not fit each other."""
    try:
        import altair
        import fast_sugiyama  # noqa: F401 - imported by name elsewhere
        import jinja2  # noqa: F401 - imported by name elsewhere
        import vl_convert
    except ImportError as error:
        message = f"pages are drawn with packages that are not installed: {error.name}"
        raise ToolError(message, _INSTALL) from error
    if _version(altair.SCHEMA_VERSION) not in vl_convert.get_vegalite_versions():
        raise ToolError(
            f"altair {altair.__version__} writes Vega-Lite {altair.SCHEMA_VERSION}, which vl-convert-python "
            f"{tools.package_version('vl-convert-python')} does not bring",
            _INSTALL,
        )


@functools.cache
def drawing_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed for the specifications that Altair writes, as one script.

    Bundling takes seconds, so that the cache keeps it. A cache that cannot be written is no reason to draw nothing.
    """
    import altair

    version = _version(altair.SCHEMA_VERSION)
    bundler = tools.package_version("vl-convert-python")
    try:
        folder = cache.directory("pages")
        with filesystem.locked_folder(folder):
            path = cache.kept(
                folder / f"vega-{version}-{bundler}.js",
                lambda path: filesystem.write_bytes(path, _bundle(version).encode()),
            )
            return path.read_text(encoding="utf-8")
    except (SdkError, OSError):
        return _bundle(version)


def _bundle(version: str) -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle(_SNIPPET, vl_version=version))


def _version(schema: str) -> str:
    """Major and minor number of ``v6.1.0``."""
    return ".".join(schema.removeprefix("v").split(".")[:2])
