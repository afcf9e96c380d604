"""Where one shot ends and the next begins, told from frames of a few pixels as they come."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray


class CutDetector:
    """A cut is a frame that differs from the one before much more than frames did lately."""

    WIDTH, HEIGHT = 32, 18
    LEAST = 14.0  # mean difference of a colour, of 255, below which nothing is a cut
    TIMES = 3.0  # the usual difference
    RECENT = 12  # frames that say what is usual
    SHORTEST = 0.4  # seconds of a shot

    def __init__(self) -> None:
        self._before: NDArray[np.float32] | None = None
        self._recent: deque[float] = deque(maxlen=self.RECENT)
        self._began = 0.0

    def is_cut(self, time: float, thumb: NDArray[np.uint8]) -> bool:
        """Whether this frame, (HEIGHT, WIDTH, 3), begins a shot; the first of all does not."""
        now = thumb.astype(np.float32)
        before, self._before = self._before, now
        if before is None:
            self._began = time
            return False
        difference = float(np.abs(now - before).mean())
        usual = float(np.median(self._recent)) if self._recent else 0.0
        cut = difference > max(self.LEAST, self.TIMES * usual)
        cut = cut and time - self._began >= self.SHORTEST
        if cut:
            self._began = time
            self._recent.clear()
        else:
            self._recent.append(difference)
        return cut
