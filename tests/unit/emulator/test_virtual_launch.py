"""A run in a guest, from the host's side: outcome, messages, evidence, and that nothing is left."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.clock.virtual import control, launch, phases
from emulator.clock.virtual.machine import GuestSpec
from emulator.results.reader import RunReader
from emulator.run.progress import Progress
from emulator.run.session import Outcome
from emulator.run.supervising import Interrupt
from emulator.waiting import wait_for
from tests.fakes.guest import FakeGuest
from tests.fakes.machine import GONE, child
from tests.unit.emulator.spec_samples import experiment
from topologies.errors import MachineError

PATIENCE_S = 30.0
NORMAL = "finish(start())"
_HANGS = """
def hang():
    with open(os.environ["FAMILY"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    while True:
        signal.pause()


signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    hang()
"""


class Shown(Progress):
    """Progress that is kept, and told to somebody.

    Args:
        on_note: called with each step.
        verbose: as of `Progress`.
    """

    def __init__(self, on_note: Callable[[str], None] | None = None, verbose: bool = False) -> None:
        super().__init__(io.StringIO(), verbose=verbose)
        self.notes: list[str] = []
        self.updates: list[tuple[float, str]] = []
        self._on_note = on_note

    def note(self, text: str) -> None:
        """Kept, then passed on."""
        self.notes.append(text)
        if self._on_note:
            self._on_note(text)

    def update(self, fraction: float, text: str) -> None:
        """Kept."""
        self.updates.append((fraction, text))


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGuest:
    """A kernel that does what a test says."""
    return FakeGuest(tmp_path, monkeypatch)


def run(
    guest: FakeGuest,
    results: Path,
    progress: Progress | None = None,
    interrupt: Interrupt | None = None,
) -> Outcome:
    """Runs a small experiment; afterwards nothing of the guest is left, whatever happened."""
    x = experiment(clock="virtual")
    try:
        return launch.run(x, "", results, progress or Shown(), interrupt or Interrupt())
    finally:
        assert guest.left() == []
        wait_for(lambda: not guest.living(), PATIENCE_S, "the guest's processes to end")


def failed(guest: FakeGuest, results: Path, **more: Any) -> str:
    """The message of a run that fails; one line."""
    with pytest.raises(MachineError) as caught:
        run(guest, results, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def only(folder: Path) -> Path:
    """The one thing in a folder."""
    (path,) = folder.iterdir()
    return path


def test_a_run_in_a_guest_ends_like_one_here(guest: FakeGuest, tmp_path: Path) -> None:
    """Folder, summary and verdict; the guest's steps and progress are shown."""
    guest.does(NORMAL)
    shown = Shown()
    outcome = run(guest, tmp_path / "results", shown)
    assert outcome.folder == only(tmp_path / "results")
    assert outcome.summary["verdict"] == "VALID"
    assert (outcome.verdict.valid, outcome.verdict.reasons) == (True, ())
    assert not outcome.interrupted
    assert shown.notes[1:] == ["guest is up", "sending", "taking the fabric down"]
    assert str(outcome.folder) in shown.notes[0]
    assert shown.updates == [(1.0, "2 of 2 flows")]


def test_the_guest_gets_the_experiment_and_its_identity(guest: FakeGuest, tmp_path: Path) -> None:
    """The run folder carries the name that the host gave it."""
    guest.does(NORMAL)
    outcome = run(guest, tmp_path / "results")
    manifest = json.loads((outcome.folder / "manifest.json").read_text())
    assert outcome.folder.name.endswith(manifest["run"])
    assert outcome.folder.name.startswith("small-")
    assert "clock: virtual" in (outcome.folder / "spec.yaml").read_text()


def test_an_invalid_run_is_an_outcome_with_reasons(guest: FakeGuest, tmp_path: Path) -> None:
    """Not an error; more dilation would not help."""
    guest.does("finish(start(), valid=False, reasons=['a lossless class lost packets'])")
    outcome = run(guest, tmp_path / "results")
    assert not outcome.verdict.valid
    assert outcome.verdict.reasons == ("a lossless class lost packets",)
    assert not outcome.verdict.slow_only


def test_wall_times_stand_in_a_file_of_their_own(guest: FakeGuest, tmp_path: Path) -> None:
    """Phase by phase, and how many packets a second the traffic made."""
    guest.does(NORMAL)
    folder = run(guest, tmp_path / "results").folder
    wall = json.loads((folder / launch.WALL).read_text())
    assert list(wall["phases_s"]) == [phases.BOOT, "imports", phases.TRAFFIC, "end"]
    assert all(seconds >= 0 for seconds in wall["phases_s"].values())
    assert wall["data_packets_per_s"] > 0


def test_the_console_becomes_one_of_the_logs(guest: FakeGuest, tmp_path: Path) -> None:
    """With what the kernel said in between."""
    guest.does("print('[    0.1] Linux', flush=True)\nfinish(start())")
    folder = run(guest, tmp_path / "results").folder
    text = (folder / "logs" / "console.log").read_text()
    assert text.startswith("[    0.1] Linux\n@fabriclab ")


def test_verbose_says_where_the_wall_time_went(guest: FakeGuest, tmp_path: Path) -> None:
    """In lines of their own, after the run; else none."""
    guest.does(NORMAL)
    shown = Shown(verbose=True)
    run(guest, tmp_path / "results", shown)
    assert shown.notes[-1].startswith("first packet after ")
    assert [note.split()[0] for note in shown.notes[-5:-1]] == ["boot", "imports", "traffic", "end"]


def test_an_error_in_the_guest_is_an_error_here(guest: FakeGuest, tmp_path: Path) -> None:
    """In its words, with the log that has all of it."""
    guest.does("start(); progress.tell(end={'error': 'MachineError: no switch came up'})")
    text = failed(guest, tmp_path / "results")
    folder = only(tmp_path / "results")
    assert "MachineError: no switch came up" in text
    assert str(folder / "logs" / "console.log") in text
    assert "no switch came up" in (folder / "logs" / "console.log").read_text()


def test_errors_name_the_folder_of_the_host(guest: FakeGuest, tmp_path: Path) -> None:
    """In the guest it has another name, which nobody could find."""
    guest.does("progress.tell(end={'error': 'MachineError: /run/results: no results: full'})")
    text = failed(guest, tmp_path / "results")
    assert f"MachineError: {only(tmp_path / 'results')}: no results: full" in text


@pytest.mark.parametrize("name", ["SIGKILL", "SIGABRT"])
def test_a_guest_that_is_killed_is_named(guest: FakeGuest, tmp_path: Path, name: str) -> None:
    """With the signal and the last words; what was written up to then is kept."""
    guest.does(
        f"{_HANGS}\nfolder = start()\nprint('[  9.1] Out of memory', flush=True)\n"
        f"os.kill(os.getpid(), signal.{name})"
    )
    text = failed(guest, tmp_path / "results")
    assert f"it was ended by {name}; [  9.1] Out of memory (see " in text
    assert "@fabriclab" not in text
    reader = RunReader.open(only(tmp_path / "results"), allow_incomplete=True)
    assert not reader.complete
    assert (reader.path / launch.WALL).exists()


def test_a_guest_that_ends_without_a_word_is_named(guest: FakeGuest, tmp_path: Path) -> None:
    """With its exit code."""
    guest.does("sys.exit(3)")
    assert "it ended with code 3; no message (see " in failed(guest, tmp_path / "results")


def test_a_guest_that_hangs_is_ended(
    guest: FakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all its processes, once it has said nothing for too long."""
    monkeypatch.setattr(launch, "SILENCE_S", 0.5)
    guest.does(f"{_HANGS}\nstart()\nhang()")
    text = failed(guest, tmp_path / "results")
    assert "the guest did not answer any more and was ended, short of memory?" in text
    assert len(guest.family.read_text().split()) == 2
    assert RunReader.open(only(tmp_path / "results"), allow_incomplete=True).manifest["name"]


def test_ctrl_c_lets_the_guest_end_in_order(guest: FakeGuest, tmp_path: Path) -> None:
    """It finds the signal's name in the control folder; what it has by then is the outcome."""
    guest.does(
        "folder, stop = start(), control / 'stop'\n"
        "wait_for(stop.read_text, 30, 'the wish')\n"
        "finish(folder, False, ['ended by ' + stop.read_text()], interrupted=True)"
    )
    interrupt = Interrupt()

    def press(note: str) -> None:
        if note == "sending":
            interrupt.asked = signal.SIGINT.name

    outcome = run(guest, tmp_path / "results", Shown(press), interrupt)
    assert outcome.interrupted
    assert outcome.verdict.reasons == ("ended by SIGINT",)


def test_a_guest_that_does_not_heed_ctrl_c_is_ended(
    guest: FakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some patience, though it may go on talking."""
    monkeypatch.setattr(launch, "_STOP_PATIENCE_S", 0.3)
    guest.does(f"{_HANGS}\nstart()\nhang()")
    interrupt = Interrupt()
    interrupt.asked = signal.SIGTERM.name
    assert "did not answer" in failed(guest, tmp_path / "results", interrupt=interrupt)


class SlowGuest:
    """A guest in a time of its own: it runs for an hour, and speaks now and then.

    Args:
        control: its folder.
        every_s: how often it speaks.
    """

    def __init__(self, control: Path, every_s: float) -> None:
        self.now_s, self.ended_s, self._next_s = 0.0, 3600.0, every_s
        self._every_s, self._console = every_s, control / "console.log"
        self._console.touch()

    def monotonic(self) -> float:
        """The time now."""
        return self.now_s

    def sleep(self, _seconds: float) -> None:
        """Ten seconds pass, however little is asked for."""
        self.now_s += 10.0
        if self.now_s >= self._next_s:
            self._next_s += self._every_s
            with self._console.open("a") as file:
                file.write('@fabriclab {"at": [0.5, "half"]}\n')

    def poll(self) -> int | None:
        """It ends after an hour."""
        return 0 if self.now_s >= self.ended_s else None

    def kill(self) -> None:
        """Now."""
        self.ended_s = min(self.ended_s, self.now_s)


@pytest.mark.parametrize(
    ("every_s", "asked", "stuck", "ended_s"),
    [
        (500.0, "", False, 3600.0),
        (5000.0, "", True, launch.SILENCE_S + 10),
        (100.0, "SIGINT", True, 70.0),
    ],
)
def test_what_counts_is_the_silence_not_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_s: float, asked: str, stuck: bool,
    ended_s: float,
) -> None:  # fmt: skip
    """A guest may take its time as long as it speaks; one that was asked to end may not."""
    slow, interrupt = SlowGuest(tmp_path, every_s), Interrupt()
    interrupt.asked = asked
    monkeypatch.setattr(launch, "time", slow)
    monkeypatch.setattr(launch, "_start", lambda _spec: slow)
    spec = GuestSpec(tmp_path / "linux", tmp_path, 1, tmp_path, tmp_path)
    heard = launch._drive(spec, Shown(), interrupt)
    assert heard.stuck is stuck
    assert slow.ended_s == ended_s


def test_a_second_ctrl_c_ends_it_at_once(guest: FakeGuest, tmp_path: Path) -> None:
    """The guest is killed, and the interrupt goes on to whoever called."""
    guest.does(f"{_HANGS}\nstart()\nhang()")

    def press(note: str) -> None:
        if note == "sending":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(guest, tmp_path / "results", Shown(press))


def test_wall_times_that_do_not_fit_on_the_disk_are_left_out(
    guest: FakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is as good without them."""

    def full(_path: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launch, "write_atomic", full)
    guest.does(NORMAL)
    outcome = run(guest, tmp_path / "results")
    assert outcome.verdict.valid
    assert not (outcome.folder / launch.WALL).exists()


def test_a_log_that_does_not_fit_on_the_disk_hides_no_message(
    guest: FakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the guest said last is in the message all the same."""

    def full(_source: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launch.shutil, "copyfile", full)
    guest.does("start(); progress.tell(end={'error': 'MachineError: the disk is full'})")
    assert "the disk is full" in failed(guest, tmp_path / "results")


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_a_summary_that_is_not_there_is_an_error(
    guest: FakeGuest, tmp_path: Path, text: str | None
) -> None:
    """The guest says that all is well, but the disk took no summary, or half of one."""
    spoil = "path.unlink()" if text is None else f"path.write_text({text!r})"
    guest.does(f"{NORMAL}\npath = Path(request['folder'], 'summary.json')\n{spoil}")
    message = failed(guest, tmp_path / "results")
    assert "summary.json" in message
    assert str(only(tmp_path / "results")) in message


def test_without_a_kernel_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to build it."""
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MachineError, match="is not built; run: fabriclab kernel build"):
        launch.run(
            experiment(clock="virtual"), "", tmp_path / "results", Shown(), Interrupt()
        )  # fmt: skip
    assert not (tmp_path / "results").exists()


def test_a_kernel_that_cannot_be_started_is_an_error(guest: FakeGuest, tmp_path: Path) -> None:
    """It was removed since it was looked for; no empty run folder is left."""
    message = failed(guest, tmp_path / "results")
    assert str(guest.program) in message
    assert "No such file or directory" in message
    assert list((tmp_path / "results").iterdir()) == []


def test_a_run_folder_that_cannot_be_made_is_an_error(guest: FakeGuest, tmp_path: Path) -> None:
    """A file is in the way; the guest is not even started."""
    guest.does(f"{_HANGS}\nhang()")
    (tmp_path / "results").write_text("")
    assert "the results folder cannot be created" in failed(guest, tmp_path / "results")
    assert not guest.family.exists()


def test_a_control_folder_that_cannot_be_made_is_an_error(
    guest: FakeGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No empty run folder is left."""

    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    guest.does(NORMAL)
    monkeypatch.setattr(control.tempfile, "mkdtemp", full)
    assert "No space left on device" in failed(guest, tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


def test_what_dead_hosts_left_is_removed_by_the_next_run(guest: FakeGuest, tmp_path: Path) -> None:
    """What belongs to a living one stays."""
    guest.does(NORMAL)
    folders = [guest.temporary / f"{control.PREFIX}{name}" for name in ("dead", "living")]
    with child() as living:
        for folder, owner in zip(folders, (GONE, living), strict=True):
            folder.mkdir()
            (folder / "owner").write_text(f"{owner[0]} {owner[1]}")
        x = experiment(clock="virtual")
        launch.run(x, "", tmp_path / "results", Shown(), Interrupt())
        assert guest.left() == [folders[1]]
