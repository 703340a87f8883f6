"""Keeping to a budget on the device: which panels stay there, and who works when memory is short."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from incrowd.distances.gpu_panels import Panel
from incrowd.errors import BudgetExceeded

Result = TypeVar("Result")
_PAUSES = (0.0, 0.1, 0.5)


class Panels:
    """The panels of one comparison, kept on the device while they fit, the longest unused dropped first."""

    def __init__(self, build: Callable[[bool, range], Panel], limit: int) -> None:
        self._build, self._limit = build, limit
        self._held: OrderedDict[tuple[bool, range], Future[Panel | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, is_y: bool, span: range) -> Panel:
        """Return the panel of some rows; the first thread to ask builds it, others wait."""
        key = (is_y, span)
        with self._lock:
            waiting = self._held.get(key)
            if waiting:
                self._held.move_to_end(key)
            else:
                mine = self._held[key] = Future()
        if waiting:
            return waiting.result() or self.get(is_y, span)
        panel = None
        try:
            panel = self._build(is_y, span)
        finally:
            if panel is None:  # those who waited try for themselves
                with self._lock:
                    del self._held[key]
            mine.set_result(panel)
        self._make_room(key)
        return panel

    def drop(self) -> None:
        """Keep none."""
        with self._lock:
            self._held.clear()

    def _make_room(self, newest: tuple[bool, range]) -> None:
        with self._lock:
            built = {key: held.result() for key, held in self._held.items() if held.done()}
            sizes = {key: panel.nbytes for key, panel in built.items() if panel}
            total = sum(sizes.values())
            for key in sizes:
                if total <= self._limit:
                    return
                if key != newest:
                    total -= sizes[key]
                    del self._held[key]


class Turns:
    """Lets tiles run side by side until device memory runs out once; from then on one at a time."""

    def __init__(self) -> None:
        self._lock, self._one_at_a_time = threading.Lock(), False

    def run(self, work: Callable[[], Result]) -> Result:
        """Do some work that raises MemoryError (as CuPy and its sorting do) if there is not enough."""
        if not self._one_at_a_time:
            with suppress(MemoryError):
                return work()
            self._one_at_a_time = True
        with self._lock:
            for pause in _PAUSES:  # tiles that began side by side end soon
                time.sleep(pause)
                with suppress(MemoryError):
                    return work()
        raise BudgetExceeded(
            "gpu: a tile needs more device memory than it may take. Use smaller tiles (`tile`), or free "
            "memory on the device."
        )
