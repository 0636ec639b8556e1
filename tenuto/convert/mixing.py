"""Which channel of the source is heard in which channel of the target, and how loud."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["mixing_matrix"]

_HALF_POWER = sqrt(0.5)

# Channels of a WAV file in their usual order: front left and right, centre, low frequencies
# (W), surround left and right, a single surround (S).
_LAYOUTS = {3: "LRC", 4: "LRlr", 5: "LRClr", 6: "LRCWlr", 7: "LRCWSlr", 8: "LRCWlrlr"}

# ITU-R BS.775-3, annex 4, table 2: low frequencies are left out of a mix to two.
_TO_STEREO = {
    "L": (1.0, 0.0),
    "R": (0.0, 1.0),
    "C": (_HALF_POWER, _HALF_POWER),
    "W": (0.0, 0.0),
    "l": (_HALF_POWER, 0.0),
    "r": (0.0, _HALF_POWER),
    "S": (0.5, 0.5),
}
_TO_MONO = {"L": _HALF_POWER, "R": _HALF_POWER, "C": 1.0, "W": 0.0, "l": 0.5, "r": 0.5}


def mixing_matrix(source: int, target: int) -> NDArray[np.float32]:
    """`target` rows of `source` factors; no row's sum exceeds 1, so full scale never clips.

    - as many channels as there are: each stays;
    - one becomes two or more: left and right in full, silence elsewhere;
    - more are wanted: what there is in front, silence behind;
    - six become one or two by ITU-R BS.775 (5.1 in the order of WAV);
    - others become one as their mean, and two by their usual place in front or surround;
      above eight no place is usual, and both hear the mean;
    - else the first ones stay, and left and right take what is beyond them.
    """
    matrix = np.zeros((target, source))
    if target == source:
        matrix[:] = np.eye(source)
    elif source == 1:
        matrix[:2] = 1
    elif target > source:
        matrix[:source] = np.eye(source)
    elif target == 1:
        matrix[0] = [_TO_MONO[place] for place in _LAYOUTS[6]] if source == 6 else 1
    elif target == 2:
        matrix[:] = _to_stereo(source)
    else:
        matrix[:, :target] = np.eye(target)
        matrix[:2, target:] = _HALF_POWER
    # One factor for all rows, or the loud side would lose against the quiet one.
    matrix /= max(1.0, float(matrix.sum(axis=1).max()))
    return matrix.astype(np.float32)


def _to_stereo(source: int) -> NDArray[np.float64]:
    if source not in _LAYOUTS:
        return np.ones((2, source))
    return np.array([_TO_STEREO[place] for place in _LAYOUTS[source]]).T
