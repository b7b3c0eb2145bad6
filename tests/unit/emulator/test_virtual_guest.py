"""Process 1 of a guest, as far as it can be tried outside of one."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.clock.virtual import guest, paths
from emulator.clock.virtual.console import MARK, ConsoleProgress
from emulator.clock.virtual.control import REQUEST, SPEC, STOP
from emulator.fidelity import Verdict
from emulator.run import session
from emulator.spec.dump import to_yaml
from tests.unit.emulator.spec_samples import experiment

MS_RDONLY, MS_SYNCHRONOUS = 1, 16
"""mount(2), from the kernel's own header."""
POWER_OFF = 0x4321FEDC
"""reboot(2), RB_POWER_OFF."""
STARTED = datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)
FOLDER = "/srv/me/results/x-1"


class Library:
    """The C library, as far as a guest calls it; nothing is mounted, nothing switched off."""

    def __init__(self) -> None:
        self.mounts: list[tuple[Any, ...]] = []
        self.reboots: list[int] = []
        self.fails_with = 0

    def mount(self, *arguments: Any) -> int:
        """Kept."""
        self.mounts.append(arguments)
        ctypes.set_errno(self.fails_with)
        return -1 if self.fails_with else 0

    def reboot(self, how: int) -> int:
        """Kept."""
        self.reboots.append(how)
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Stands in for the C library."""
    fake = Library()
    monkeypatch.setattr(guest, "_libc", fake)
    return fake


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control folder as a host makes it, where the guest looks for it."""
    folder = tmp_path / "control"
    folder.mkdir()
    request = {
        "run": "abc123", "started": STARTED.isoformat(), "label": "dctcp",
        "folder": FOLDER, "needed": ["/tmp/checkout", "/run/venv"], "installed": {},
    }  # fmt: skip
    (folder / REQUEST).write_text(json.dumps(request))
    (folder / STOP).touch()
    (folder / SPEC).write_text(to_yaml(experiment(clock="virtual")))
    monkeypatch.setattr(guest, "CONTROL", folder)
    return folder


def test_what_is_mounted_where(library: Library, tmp_path: Path) -> None:
    """Names as bytes; the place is made; no data is none, not an empty text."""
    target = tmp_path / "run" / "täst"
    guest.mount("none", target, "hostfs", MS_RDONLY, "/srv/me")
    guest.mount("proc", target, "proc")
    assert target.is_dir()
    place = os.fsencode(target)
    assert library.mounts == [
        (b"none", place, b"hostfs", MS_RDONLY, b"/srv/me"),
        (b"proc", place, b"proc", 0, None),
    ]


def test_a_mount_that_fails_says_which(library: Library, tmp_path: Path) -> None:
    """Kind, place and reason."""
    library.fails_with = 19
    with pytest.raises(OSError, match=rf"mount bpf on {tmp_path}/bpf: No such device") as caught:
        guest.mount("bpf", tmp_path / "bpf", "bpf")
    assert caught.value.errno == 19


class World:
    """What making the guest's world does, in order.

    Attributes:
        mounts: (kind, place, flags, data).
        slept_s: how long it waited.
        loopback: how often the loopback device was brought up.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now_s: float) -> None:
        self.mounts: list[tuple[str, str, int, str]] = []
        self.slept_s: list[float] = []
        self.loopback = 0
        monkeypatch.setattr(guest, "mount", self.mount)
        monkeypatch.setattr(guest, "_loopback_up", self.loopback_up)
        monkeypatch.setattr(time, "sleep", self.slept_s.append)
        monkeypatch.setattr(time, "monotonic", lambda: now_s)

    def mount(self, _source: str, place: Path, kind: str, flags: int = 0, data: str = "") -> None:
        """Kept."""
        self.mounts.append((kind, str(place), flags, data))

    def loopback_up(self) -> None:
        """After the kernel's files are there."""
        assert ("proc", "/proc", 0, "") in self.mounts
        self.loopback += 1


def test_a_guest_may_write_to_the_run_folder_alone(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else of the host is read-only, and its own folders lie over the host's first."""
    world = World(monkeypatch, 1.0)
    request = guest.make_world(str(control))
    assert request["run"] == "abc123"
    of_host = [entry for entry in world.mounts if entry[0] == "hostfs"]
    assert of_host == [
        ("hostfs", "/tmp/checkout", MS_RDONLY, "/tmp/checkout"),
        ("hostfs", "/run/venv", MS_RDONLY, "/run/venv"),
        ("hostfs", str(control), MS_RDONLY, str(control)),
        ("hostfs", "/run/results", MS_SYNCHRONOUS, FOLDER),
    ]
    own = [place for kind, place, *_ in world.mounts if kind == "tmpfs"]
    assert own == [str(path) for path in paths.REPLACED]
    assert world.mounts.index(of_host[0]) > world.mounts.index(("tmpfs", own[-1], 0, ""))
    assert {"proc", "sysfs", "bpf"} <= {kind for kind, *_ in world.mounts}
    assert world.loopback == 1


@pytest.mark.parametrize(("now_s", "wait_s"), [(1.5, 18.5), (20.0, 0.0), (25.0, 0.0)])
def test_a_guest_waits_until_open_vswitch_works(
    control: Path, monkeypatch: pytest.MonkeyPatch, now_s: float, wait_s: float
) -> None:
    """20 s after the guest's boot, which costs nothing there."""
    world = World(monkeypatch, now_s)
    guest.make_world(str(control))
    assert world.slept_s == [wait_s]


Ran = Callable[[session.Request, Any, Any], session.Outcome]


def run_with(control: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> dict[str, Any]:
    """`guest.run` with a stand-in for the run itself."""
    monkeypatch.setattr(session, "run_once", ran)
    request = json.loads((control / REQUEST).read_text())
    with Path(os.devnull).open("w") as nowhere:
        return guest.run(request, ConsoleProgress(nowhere))


def test_the_run_has_the_identity_that_the_host_gave_it(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder too; only the names of namespaces are the same in every guest."""
    asked: list[session.Request] = []

    def ran(request: session.Request, _progress: object, _interrupt: object) -> session.Outcome:
        asked.append(request)
        verdict = Verdict(False, ("too slow", "lost"), False)
        return session.Outcome(Path("/run/results"), {}, verdict, interrupted=True)

    end = run_with(control, monkeypatch, ran)
    assert end == {"valid": False, "reasons": ["too slow", "lost"], "interrupted": True}
    (request,) = asked
    assert request.identity == session.Identity("abc123", STARTED)
    assert (request.folder, request.label) == (Path("/run/results"), "dctcp")
    assert request.datapath == "system"
    assert request.resource_id
    assert request.resource_id != "abc123"
    assert request.experiment == experiment(clock="virtual")


def test_the_users_wish_to_end_is_a_file_of_the_host(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty, then with the signal's name; what is written to it here does not count."""
    seen: list[str] = []

    def ran(_request: object, _progress: object, interrupt: Any) -> session.Outcome:
        seen.append(interrupt.asked)
        interrupt.asked = "SIGTERM"
        seen.append(interrupt.asked)
        (control / STOP).write_text("SIGINT")
        seen.append(interrupt.asked)
        return session.Outcome(Path(), {}, Verdict(True, (), False), bool(interrupt.asked))

    assert run_with(control, monkeypatch, ran)["interrupted"] is True
    assert seen == ["", "", "SIGINT"]


@pytest.fixture
def powered(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[..., Any]], tuple[list[dict[str, Any]], str]]:
    """Runs `guest.main` with a stand-in for the experiment; what it told, and all else it said."""
    synced: list[int] = []
    monkeypatch.setattr(os, "sync", lambda: synced.append(len(library.reboots)))
    monkeypatch.setattr(guest, "make_world", lambda _control: {})

    def main(run: Callable[..., Any]) -> tuple[list[dict[str, Any]], str]:
        monkeypatch.setattr(guest, "run", run)
        guest.main("/tmp/control")
        assert synced == [0], "what was written must be on the disk before the guest is off"
        assert library.reboots == [POWER_OFF]
        lines = capsys.readouterr().out.splitlines()
        told = [json.loads(line[len(MARK) :]) for line in lines if line.startswith(MARK)]
        return told, "\n".join(line for line in lines if not line.startswith(MARK))

    return main


def test_a_guest_says_that_it_is_up_then_how_it_ended(powered: Any) -> None:
    """And is switched off, with everything written."""
    end = {"valid": True, "reasons": [], "interrupted": False}
    told, rest = powered(lambda *_: end)
    assert told == [{"note": "guest is up"}, {"end": end}]
    assert rest == ""


@pytest.mark.parametrize(
    "error", [ValueError("what\nelse"), KeyboardInterrupt("now"), SystemExit(3), MemoryError()]
)
def test_whatever_fails_is_told_and_ends_the_guest(powered: Any, error: BaseException) -> None:
    """With the traceback on the console; process 1 must not just end."""

    def run(*_: object) -> SimpleNamespace:
        raise error

    told, rest = powered(run)
    assert told[-1] == {"end": {"error": f"{type(error).__name__}: {error}"}}
    assert rest.startswith("Traceback (most recent call last)")
