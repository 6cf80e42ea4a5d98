"""Width of labels, without a browser.

Boxes are sized before any font is known, so each character counts as wide as the widest of the fonts that the drawing's
font stacks end in on common systems: DejaVu Sans and Liberation Sans (metric twin of Arial and Helvetica), and for
names DejaVu Sans Mono. A label then fits whichever of them a reader has; `tests/browser` measures that in Chromium.
"""

from __future__ import annotations

from functools import lru_cache

SANS = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"

# Advance widths in 1/1000 em of U+0020 to U+007E, read from the hmtx tables of the fonts named above.
# fmt: off
_REGULAR = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 556, 1015, 684, 686, 722, 770, 667, 611, 778, 752, 295,
    500, 667, 557, 863, 748, 787, 667, 787, 722, 667, 611, 732, 684, 989, 685, 667, 685, 390, 337, 390, 838,
    556, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)
_BOLD = (
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696,
    696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 611, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372,
    556, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838,
    556, 500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595,
    478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
)
# fmt: on
_OTHER = {"×": 838, "→": 1000, "·": 380, "…": 1000}
_WIDE = 1000  # CJK and everything else that is not in the table
_MONO = 603


@lru_cache(maxsize=4096)
def sans(text: str, size: float, bold: bool = False) -> float:
    """Return the width of ``text`` at ``size``, in the unit of ``size`` (user units of the drawing)."""
    table = _BOLD if bold else _REGULAR
    return sum(table[ord(c) - 32] if 32 <= ord(c) < 127 else _OTHER.get(c, _WIDE) for c in text) * size / 1000


def mono(text: str, size: float) -> float:
    """Return the width of ``text`` in the monospaced stack."""
    return sum(_MONO if ord(c) < 0x2E80 else _WIDE for c in text) * size / 1000


def shorten(text: str, most: int) -> str:
    """Return ``text``, its middle left out if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
