"""Picks the kernel for the input and the machine, says why, and can be overruled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from incrowd.distances.kernel import Kernel, ReferenceKernel
from incrowd.distances.reference import Metric
from incrowd.errors import InputError

# Fastest first. A module is imported only when its turn comes.
_KERNELS = {
    "gpu": ("incrowd.distances.gpu", "GpuKernel"),
    "cpu": ("incrowd.distances.cpu", "CpuKernel"),
    "reference": ("incrowd.distances.kernel", "ReferenceKernel"),
}
KERNELS = tuple(_KERNELS)
SMALL_JOB = 20_000_000
"""Pairs below which starting the GPU costs more than it saves."""


@dataclass(frozen=True)
class Choice:
    """The kernel taken and the reasons, one line for every kernel looked at."""

    kernel: Kernel
    reasons: tuple[str, ...]


def kernel_named(name: str) -> Kernel:
    """Load a kernel by name."""
    if name not in _KERNELS:
        raise InputError(f"kernel: expected auto, {', '.join(KERNELS)}; got {name!r}.")
    module, attribute = _KERNELS[name]
    loaded: Callable[[], Kernel] = getattr(import_module(module), attribute)
    return loaded()


def choose(metric: Metric, pairs: int, kernel: str = "auto") -> Choice:
    """Take the fastest kernel that accepts the job, or the one asked for.

    >>> from incrowd.distances.reference import METRICS
    >>> choose(METRICS["hellinger"], 10, "reference").reasons
    ('reference: asked for',)
    """
    if kernel != "auto":
        return _forced(metric, kernel)
    reasons = []
    for name in KERNELS:
        reason = _objection(name, metric, pairs)
        reasons.append(f"{name}: {reason or 'taken'}")
        if not reason:
            return Choice(kernel_named(name), tuple(reasons))
    return Choice(ReferenceKernel(), tuple(reasons))


def _forced(metric: Metric, name: str) -> Choice:
    kernel = kernel_named(name)
    if reason := kernel.refuses(metric):
        raise InputError(f"kernel: {name!r} was asked for but {reason}. Use kernel='auto'.")
    return Choice(kernel, (f"{name}: asked for",))


def _objection(name: str, metric: Metric, pairs: int) -> str:
    if name == "gpu" and pairs < SMALL_JOB:
        return f"{pairs:,} pairs are too few to be worth starting it"
    try:
        return kernel_named(name).refuses(metric)
    except ImportError as error:
        return f"cannot be loaded ({error.name or error})"
