"""Settings of the host: raised for a block, written down before, restored after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from emulator import sysctls

SEND, RECEIVE = "net.core.wmem_default", "net.core.rmem_default"
WANTED = {SEND: "64000", RECEIVE: "64000"}


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of /proc/sys with both settings at 1000."""
    monkeypatch.setattr(sysctls, "_BASE", tmp_path)
    (tmp_path / "net" / "core").mkdir(parents=True)
    for name in (SEND, RECEIVE):
        sysctls.write(name, "1000\n")
    return tmp_path


class Journal:
    """Notes what it is told, and what the settings were at that time."""

    def __init__(self) -> None:
        self.entries: list[object] = []

    def sysctls_changed(self, before: Mapping[str, str]) -> None:
        """About to change."""
        self.entries.append((dict(before), {name: sysctls.read(name) for name in before}))

    def sysctls_restored(self) -> None:
        """As before."""
        self.entries.append("restored")


def values() -> list[str]:
    """Both settings now."""
    return [sysctls.read(SEND), sysctls.read(RECEIVE)]


def test_a_setting_is_a_file_by_its_name(base: Path) -> None:
    """Dots are folders."""
    assert (base / "net" / "core" / "wmem_default").read_text() == "1000\n"
    assert sysctls.read(SEND) == "1000"


def test_settings_are_raised_during_the_block_only() -> None:
    """And the values before are known to whoever asked."""
    journal = Journal()
    with sysctls.raised(WANTED, journal) as before:
        assert values() == ["64000", "64000"]
        assert before == {SEND: "1000", RECEIVE: "1000"}
    assert values() == ["1000", "1000"]


def test_what_is_about_to_change_is_written_down_first() -> None:
    """A process that is killed in between leaves a note of what to restore."""
    journal = Journal()
    with sysctls.raised(WANTED, journal):
        old = {SEND: "1000", RECEIVE: "1000"}
        assert journal.entries == [(old, old)]
    assert journal.entries[1:] == ["restored"]


def test_a_setting_that_is_higher_already_is_left_alone() -> None:
    """It is raised, never lowered, and what was not changed is not restored."""
    sysctls.write(SEND, "128000")
    journal = Journal()
    with sysctls.raised(WANTED, journal) as before:
        assert values() == ["128000", "64000"]
        assert before == {RECEIVE: "1000"}
        sysctls.write(SEND, "256000")  # somebody else's doing
    assert values() == ["256000", "1000"]


def test_settings_are_restored_after_a_failure_too() -> None:
    """However the block ends."""
    journal = Journal()
    with pytest.raises(RuntimeError), sysctls.raised(WANTED, journal):
        raise RuntimeError
    assert values() == ["1000", "1000"]
    assert journal.entries[-1] == "restored"


def test_what_cannot_be_restored_stays_written_down(base: Path) -> None:
    """`fabriclab clean` can try again."""
    journal = Journal()

    def fail() -> None:
        with sysctls.raised(WANTED, journal):
            (base / "net" / "core" / "wmem_default").unlink()
            (base / "net" / "core" / "wmem_default").mkdir()

    with pytest.raises(OSError, match="wmem_default"):
        fail()
    assert "restored" not in journal.entries


def test_a_setting_that_the_kernel_does_not_have_is_an_error() -> None:
    """Nothing is changed then."""
    with pytest.raises(OSError, match="nothing"), sysctls.raised({"net.nothing": "1"}, Journal()):
        pass
    assert values() == ["1000", "1000"]
