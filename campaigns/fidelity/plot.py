"""Modelled against measured times as an SVG picture with logarithmic axes, one mark a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_SIDE, _MARGIN = 276, 48  # for phones too
_BAND = 0.1  # of the grey strip
_STYLE = (
    "text{font:12px sans-serif;fill:currentColor}svg{color:#333}"
    "@media(prefers-color-scheme:dark){svg{color:#ddd}}"
)


def picture(fvp: Sequence[tuple[str, float, float]], silicon: Sequence[tuple[str, float, float]]) -> str:
    """The picture of (name, measured, modelled) rows in cycles: circles for the FVP, squares for silicon."""
    values = [value for _, *pair in (*fvp, *silicon) for value in pair]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def across(value: float) -> float:
        return _MARGIN + (math.log10(value) - low) / (high - low) * _SIDE

    def down(value: float) -> float:
        return _MARGIN / 2 + _SIDE - (math.log10(value) - low) / (high - low) * _SIDE

    width, height = _SIDE + 1.5 * _MARGIN, _SIDE + 1.8 * _MARGIN
    first, last = 10.0**low, 10.0**high
    shift = down(first) - down(first * (1 + _BAND))
    corners = ((first, shift), (last, shift), (last, -shift), (first, -shift))
    strip = " ".join(f"{across(value):.1f},{down(value) - move:.1f}" for value, move in corners)
    frame = (across(first), down(last), _SIDE, _SIDE)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">',
        f"<title>Modelled against measured cycles</title><style>{_STYLE}</style>",
        '<clipPath id="frame"><rect x="{:g}" y="{:g}" width="{}" height="{}"/></clipPath>'.format(*frame),
        f'<polygon points="{strip}" fill="currentColor" opacity=".12" clip-path="url(#frame)"/>',
        '<rect x="{:g}" y="{:g}" width="{}" height="{}" fill="none" stroke="currentColor"/>'.format(*frame),
    ]
    for power in range(low, high + 1):
        value, name = 10.0**power, f"10<tspan dy='-4' font-size='11'>{power}</tspan>"
        lines.append(f'<text x="{across(value) - 8:.1f}" y="{down(first) + 18:.1f}">{name}</text>')
        lines.append(f'<text x="{across(first) - 28:.1f}" y="{down(value) + 4:.1f}">{name}</text>')
    for name, measured, modelled in fvp:
        place = f'cx="{across(measured):.1f}" cy="{down(modelled):.1f}"'
        lines.append(
            f'<circle {place} r="3.5" fill="#1f77b4" opacity=".8"><title>{escape(name)}</title></circle>'
        )
    for name, measured, modelled in silicon:
        place = f'x="{across(measured) - 4:.1f}" y="{down(modelled) - 4:.1f}"'
        lines.append(
            f'<rect {place} width="8" height="8" fill="#d95f02"><title>{escape(name)}</title></rect>'
        )
    lines += [
        f'<circle cx="{_MARGIN + 14}" cy="{_MARGIN / 2 + 16}" r="3.5" fill="#1f77b4"/>',
        f'<text x="{_MARGIN + 26}" y="{_MARGIN / 2 + 20}">FVP</text>',
        f'<rect x="{_MARGIN + 10}" y="{_MARGIN / 2 + 30}" width="8" height="8" fill="#d95f02"/>',
        f'<text x="{_MARGIN + 26}" y="{_MARGIN / 2 + 38}">FPGA board</text>',
        f'<text x="{_MARGIN + _SIDE / 2}" y="{height - 12:g}" text-anchor="middle">measured cycles</text>',
        f'<text transform="translate(14 {_SIDE / 2 + 40}) rotate(-90)" text-anchor="middle">modelled cycles</text>',
        "</svg>",
    ]
    return "\n".join([*lines, ""])
