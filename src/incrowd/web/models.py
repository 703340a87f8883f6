"""A model that somebody brings to the web page is read in a child process with caps on memory and time.

What it claims to unpack to is checked before anything is unpacked; but lists of words and topics can still take many
times their size, so whatever a file holds, it is the child that runs out of memory, and the page is served meanwhile.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.exposure.learnt_spaces import TrainedSpace, load_space

MOST_BYTES = 512 * 2**20
"""What an uploaded model may take once it is unpacked; sizes are looked at before anything is."""
MEMORY = 2 * 2**30
"""What reading it may take on top of the program itself; beyond it the system ends the child's allocations."""
SECONDS = 60.0


def read_in_child(path: Path) -> TrainedSpace:
    """Read a model without risk to this process."""
    command = [sys.executable, "-m", "incrowd.web.models", str(path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(  # noqa: S603  our own interpreter and module
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableSource(
            f"{path}: expected a model that can be read within {SECONDS:g} seconds, got one that takes longer"
        ) from None
    if done.returncode != 0:
        raise UnreadableSource(
            f"{path}: expected a model that can be read in {MEMORY / 2**30:g} GiB of memory, got one that takes more, "
            "or is none"
        )
    found = pickle.loads(done.stdout)  # noqa: S301  our own child wrote it
    if isinstance(found, str):
        raise UnreadableSource(found)
    space: TrainedSpace = found
    return space


def main(path: Path) -> None:
    """Read a model within the caps and write it, or what is wrong with it, to standard output."""
    _cap()
    found: TrainedSpace | str
    try:
        found = load_space(path, most_bytes=MOST_BYTES)
    except InputError as error:
        found = str(error)
    pickle.dump(found, sys.stdout.buffer, protocol=5)


def _cap() -> None:
    """Limit memory and processor time where the system can: not on Windows, where the time limit alone holds."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        taken = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
