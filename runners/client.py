"""The console's side of a run: starts a zygote, sends a request, hears events, cancels by hanging up.

Imports nothing heavy: torch lives in the zygote.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from runners.channel import Channel, ChannelClosed, ChannelError, ChannelTimeout, pair
from runners.contract import RunEnded, RunEvent, RunRequest
from runners.evidence import Evidence

START_S = 180.0
POLL_S = 0.1
ENVIRONMENT_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "TZ")
STEADY_MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""glibc keeps freed memory: else each temporary of a megabyte faults its pages in anew, and timings scatter."""
_BOOT = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; sys.path.append(sys.argv[3]); "
    "from runners.zygote import main; main(int(sys.argv[1]), sys.argv[2] == 'interpreted', sys.argv[3])"
)


class RunnerError(Exception):
    """A run could not be started or did not end as runs do. The fault is the machine's or the console's."""


class _Zygote:
    def __init__(self, python: str, interpreted: bool, package: Path) -> None:
        mine, theirs = pair()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the zygote
        mode = "interpreted" if interpreted else "native"
        environment = {name: os.environ[name] for name in ENVIRONMENT_KEPT if name in os.environ}
        environment.update(
            OMP_NUM_THREADS="1",
            MKL_NUM_THREADS="1",
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONUNBUFFERED="1",
            HOME="/nonexistent",
            **STEADY_MALLOC,
        )
        if interpreted:
            environment["TRITON_INTERPRET"] = "1"
        fd = theirs.fileno()
        self.process = subprocess.Popen(
            [python, "-I", "-c", _BOOT, str(fd), mode, str(package)],
            env=environment,
            pass_fds=(fd,),
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        self.channel = mine
        self.lock = threading.Lock()
        try:
            self.hello = mine.receive(START_S)
        except (ChannelClosed, ChannelError, ChannelTimeout):
            words = self.words()
            self.close()
            raise RunnerError(f"the runner did not start with {python}: {words or 'no words'}") from None

    def words(self) -> str:
        """The end of what the zygote printed."""
        size = os.fstat(self._stderr.fileno()).st_size
        data = os.pread(self._stderr.fileno(), 4096, max(0, size - 4096))
        return data.decode("utf-8", "replace").strip()[-800:]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.channel.close()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stderr.close()


def _package_folder() -> Path:
    """A folder that holds ``runners`` and nothing else, so that another Python finds its own torch, not ours."""
    here = Path(__file__).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="kernel-review-runner-"))
    (folder / "runners").symlink_to(here, target_is_directory=True)
    return folder


class Runner:
    """Runs requests, several at once from several threads. Zygotes start on first use and stay warm."""

    def __init__(self, python: str | None = None) -> None:
        self._python = python or sys.executable
        self._zygotes: dict[bool, _Zygote] = {}
        self._lock = threading.Lock()
        self._starting = {True: threading.Lock(), False: threading.Lock()}
        self._folder: Path | None = None
        self._closed = False

    def run(
        self,
        request: RunRequest,
        on_event: Callable[[RunEvent], None] = lambda event: None,
        cancelled: threading.Event | None = None,
    ) -> Evidence | None:
        """Run one request to its end and return its evidence; None when it was cancelled. Raises RunnerError."""
        if sys.platform != "linux":
            raise RunnerError("runs need Linux")
        interpreted = request.framework == "triton" and request.device == "cpu"
        zygote = self._zygote(interpreted)
        mine, theirs = pair()
        try:
            with zygote.lock:
                zygote.channel.send(msgspec.json.encode(request), fds=(theirs.fileno(),))
        except ChannelClosed:
            mine.close()
            raise RunnerError(f"the runner has ended: {zygote.words() or 'no words'}") from None
        finally:
            theirs.close()
        try:
            return self._follow(mine, on_event, cancelled, zygote)
        finally:
            mine.close()

    def warm(self, *, interpreted: bool) -> None:
        """Start a zygote ahead of its first run. Raises RunnerError."""
        self._zygote(interpreted)

    def close(self) -> None:
        """End the zygotes; runs that are still going end with them."""
        with self._lock:
            self._closed = True
            zygotes = list(self._zygotes.values())
            self._zygotes.clear()
        for zygote in zygotes:
            zygote.close()
        if self._folder is not None:  # a zygote removes it, too, when it is hung up on
            with contextlib.suppress(OSError):
                (self._folder / "runners").unlink()
                self._folder.rmdir()

    def _follow(
        self,
        channel: Channel,
        on_event: Callable[[RunEvent], None],
        cancelled: threading.Event | None,
        zygote: _Zygote,
    ) -> Evidence | None:
        decode = msgspec.json.Decoder(RunEvent).decode
        while True:
            if (cancelled is not None and cancelled.is_set()) or self._closed:
                return None
            try:
                event = decode(channel.receive(POLL_S))
            except ChannelTimeout:
                continue
            except (ChannelClosed, ChannelError):
                raise RunnerError(f"the run ended without a verdict: {zygote.words() or 'no words'}") from None
            on_event(event)
            if isinstance(event, RunEnded):
                return event.evidence

    def _zygote(self, interpreted: bool) -> _Zygote:
        with self._starting[interpreted]:
            with self._lock:
                if self._closed:
                    raise RunnerError("the runner is closed")
                known = self._zygotes.get(interpreted)
                if known is not None and known.alive:
                    return known
                if self._folder is None:
                    self._folder = _package_folder()
                folder = self._folder
            if known is not None:
                known.close()
            made = _Zygote(self._python, interpreted, folder)
            with self._lock:
                self._zygotes[interpreted] = made
            return made


def is_linux() -> bool:
    """Whether panels can run here at all."""
    return sys.platform == "linux"
