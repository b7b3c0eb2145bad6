"""The ledger of a run: written before anything is made, and all that release goes by."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

import pytest

from emulator import naming, ownership, sysctls
from emulator.kernel.process import is_alive, is_listening, start_time
from emulator.ownership import (
    FILE,
    Ledger,
    Owned,
    all_owned,
    exclusive,
    is_running,
    living,
    release,
)
from tests.fakes.machine import GONE, FakeMachine, child
from topologies.errors import MachineError

RUN = "abc123"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Folders that stand in for /run/fabriclab and /run/netns."""
    return FakeMachine(tmp_path, monkeypatch)


def on_disk() -> Owned:
    """What the file of the run says."""
    return ownership.parse((naming.state_folder(RUN) / FILE).read_text())


def test_a_ledger_begins_with_its_owner(machine: FakeMachine, tmp_path: Path) -> None:
    """This process, told from later ones of its number by its start time."""
    Ledger(RUN, tmp_path / "results")
    owned = on_disk()
    assert owned == Owned(
        RUN, (os.getpid(), start_time(os.getpid()) or ""), results=str(tmp_path / "results")
    )
    assert is_running(owned)


def test_everything_is_on_disk_before_it_happens(machine: FakeMachine) -> None:
    """Each entry is written at once, so that a death right after it leaves a trace."""
    ledger = Ledger(RUN)
    ledger.add_namespaces(["fl-abc123", "fl-abc123-h1"])
    assert on_disk().namespaces == ["fl-abc123", "fl-abc123-h1"]
    ledger.add_namespaces(["fl-abc123-h2"])
    assert len(on_disk().namespaces) == 3
    ledger.add_process(os.getpid())
    assert on_disk().processes == [(os.getpid(), start_time(os.getpid()))]
    ledger.sysctls_changed({"net.x": "1"})
    assert on_disk().sysctls == {"net.x": "1"}
    ledger.sysctls_restored()
    assert on_disk().sysctls == {}


def test_a_file_is_never_half_written(machine: FakeMachine) -> None:
    """It is replaced in one step; nothing else is left in the folder."""
    ledger = Ledger(RUN)
    ledger.add_namespaces(["fl-abc123"])
    assert [path.name for path in ledger.folder.iterdir()] == [FILE]


def test_a_process_that_has_ended_already_is_not_noted(machine: FakeMachine) -> None:
    """There is nothing to end, and its number may be somebody else's soon."""
    ledger = Ledger(RUN)
    ledger.add_process(GONE[0])
    assert on_disk().processes == []


def test_one_run_has_one_ledger(machine: FakeMachine) -> None:
    """A second one of the same id would hide the first one's entries."""
    Ledger(RUN)
    with pytest.raises(MachineError, match=RUN):
        Ledger(RUN)


def test_release_kills_exactly_the_processes_that_it_names(machine: FakeMachine) -> None:
    """One with another start time is a later process of the same number: not ours."""
    with child() as ours, child() as other:
        owned = Owned(RUN, GONE, processes=[ours, (other[0], "1"), GONE])
        assert release(owned) == [f"process {ours[0]}"]
        assert not is_alive(*ours)
        assert is_alive(*other)


def test_release_ends_children_newest_first_and_removes_the_rest(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was started last depends on what was started before."""
    written: list[tuple[str, str]] = []
    monkeypatch.setattr(sysctls, "write", lambda name, value: written.append((name, value)))
    with child() as first, child() as second:
        owned = Owned(RUN, GONE, [first, second], ["fl-abc123", "fl-abc123-h1"], {"net.x": "1"})
        folder = machine.add(owned)
        (machine.namespaces / "fl-other").touch()
        assert release(owned) == [
            f"process {second[0]}",
            f"process {first[0]}",
            "namespace fl-abc123",
            "namespace fl-abc123-h1",
            "setting net.x (back to 1)",
        ]
    assert written == [("net.x", "1")]
    assert not folder.exists()
    assert [path.name for path in machine.namespaces.iterdir()] == ["fl-other"]


def test_releasing_twice_removes_nothing_more(machine: FakeMachine) -> None:
    """What is gone is gone."""
    ledger = Ledger(RUN)
    ledger.add_namespaces(["fl-abc123"])
    ledger.close()
    assert not ledger.folder.exists()
    assert release(ledger.owned) == []


def test_all_that_is_owned_is_found_by_run(machine: FakeMachine) -> None:
    """Files that cannot be read are no reason not to find the others."""
    for run_id in ("bbb222", "aaa111"):
        machine.add(Owned(run_id, GONE))
    for run_id, text in (("ccc333", "{"), ("ddd444", "{}"), ("eee555", '{"owner": 3}')):
        machine.add(Owned(run_id, GONE))
        (naming.state_folder(run_id) / FILE).write_text(text)
    assert [owned.run_id for owned in all_owned()] == ["aaa111", "bbb222"]


def test_only_what_runs_is_living(machine: FakeMachine) -> None:
    """A file of a dead emulator is what is left of it; this process itself can be left out."""
    machine.add(Owned("aaa111", GONE))
    Ledger(RUN)
    with child() as other:
        machine.add(Owned("bbb222", other))
        assert [owned.run_id for owned in living()] == [RUN, "bbb222"]
        assert [owned.run_id for owned in living(but=os.getpid())] == ["bbb222"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"owner": [1, "2"]}', json.dumps({"x": 1})])
def test_a_damaged_file_is_a_value_error(text: str) -> None:
    """One kind of error for all that may be wrong with it."""
    with pytest.raises(ValueError, match=r"owned\.json|Expecting"):
        ownership.parse(text)


def test_one_at_a_time_may_change_the_host_s_settings(machine: FakeMachine) -> None:
    """The lock is held during the block and free afterwards."""
    lock = machine.state / "settings.lock"

    def take() -> None:
        with lock.open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with exclusive(), pytest.raises(BlockingIOError):
        take()
    take()


def test_a_port_that_somebody_listens_on_is_seen() -> None:
    """Bound alone is not listening; another port, and a process that is gone, are not."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not is_listening(os.getpid(), port)
        server.listen()
        assert is_listening(os.getpid(), port)
        assert not is_listening(GONE[0], port)
    assert not is_listening(os.getpid(), port)
