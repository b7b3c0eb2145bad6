"""The repository itself: one version, a changelog that knows it, decisions in order."""

from __future__ import annotations

import configparser
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import emulator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("controller", "emulator", "topologies", "traffic")


def setup_cfg() -> configparser.ConfigParser:
    """The project's settings."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def version() -> str:
    """The version, from the one place that states it."""
    return setup_cfg()["metadata"]["version"]


def tracked() -> list[Path]:
    """Files under version control; all files where there is no git."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git and a checkout")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    """A file's text, empty when it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_the_version_stands_in_setup_cfg_only() -> None:
    """No other file of the packages states a version, and the program shows the one there is."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", version())
    assert emulator.__version__ == version()
    literal = re.compile(rf"""["']{re.escape(version())}["']|__version__ = ["']""")
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    assert [str(file) for file in files if literal.search(text_of(file))] == []
    assert "project" not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_changelog_has_an_entry_for_this_version_and_room_for_the_next() -> None:
    """What is released is described, and the newest release is the current version."""
    headings = re.findall(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings[0] == "Unreleased"
    assert headings[1] == version()
    assert len(set(headings)) == len(headings)


def test_decisions_are_numbered_without_gaps_and_titled_alike() -> None:
    """Decision n is the file ``000n-...`` whose title begins with n, and says its status."""
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert files
    for number, file in enumerate(files, start=1):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(rf"{number:04d}-[a-z0-9-]+\.md", file.name)
        assert lines[0].startswith(f"# {number}. ")
        assert lines[2].startswith("Status: ")


def test_constraints_pin_what_setup_cfg_asks_for() -> None:
    """Every requirement, of every extra, has an exact release in the constraints."""
    parser = setup_cfg()
    wanted = parser["options"]["install_requires"].splitlines()
    for extra in parser["options.extras_require"].values():
        wanted += extra.splitlines()
    names = {re.split(r"[<>=!~; ]", line)[0].lower() for line in wanted if line}
    pins = (ROOT / "scripts" / "constraints.txt").read_text(encoding="utf-8").lower()
    pinned = set(re.findall(r"^([a-z0-9._-]+)==\S+$", pins, re.MULTILINE))
    assert names <= pinned


def test_developer_tools_are_pinned_alike_in_both_places() -> None:
    """The release of a tool whose opinion can change is the same in setup.cfg and constraints."""
    pins = (ROOT / "scripts" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for line in setup_cfg()["options.extras_require"]["dev"].split():
        assert line in pins


def test_every_package_is_installed_and_has_a_docstring() -> None:
    """The packages that setup.cfg includes are those of the layout, and each says what it is."""
    includes = setup_cfg()["options.packages.find"]["include"].split()
    assert includes == [f"{name}*" for name in PACKAGES]
    for file in (file for name in PACKAGES for file in (ROOT / name).rglob("__init__.py")):
        assert text_of(file).startswith('"""'), file


def test_every_folder_of_code_is_a_package() -> None:
    """A folder without ``__init__.py`` would be left out of an installation."""
    folders = {file.parent for name in PACKAGES for file in (ROOT / name).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_file_of_a_package_is_installed_with_it() -> None:
    """Profiles, templates and the data plane's source are package data, not only code."""
    data = {
        file
        for package, patterns in setup_cfg()["options.package_data"].items()
        for pattern in patterns.split()
        for file in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    inside = {file for file in tracked() if file.relative_to(ROOT).parts[0] in PACKAGES}
    assert {file for file in inside if file.suffix != ".py"} - data == set()


FOREIGN = re.compile(
    rf"{re.escape(str(ROOT))}/|/root/|/home/(?!vagrant/)\w+"
    r"|https?://[a-z.]*(?:deb[i]an|py[p]i|np[m]js|python[h]osted)\.(?:org|com)"
)
"""Paths of one machine, and hosts of package registries."""


def test_no_file_names_a_path_of_one_machine_or_a_registry() -> None:
    """What is committed works everywhere: no home folders, work folders or mirror addresses."""
    own = Path(__file__).resolve()
    found = [
        f"{file.relative_to(ROOT)}: {match.group()}"
        for file in tracked()
        if file != own
        for match in FOREIGN.finditer(text_of(file))
    ]
    assert found == []


@pytest.mark.parametrize("text", ["/root/x", f"cd {ROOT}/docs", "/home/alice/fabriclab"])
def test_the_search_for_machine_paths_finds_them(text: str) -> None:
    """The check above can fail; what a Vagrant box is called is no machine of ours."""
    assert FOREIGN.search(text)
    assert not FOREIGN.search("/home/vagrant/fabriclab /usr/lib /tmp/x /opt/fabriclab/venv")


def test_scripts_are_executable_and_named_where_they_are_used() -> None:
    """make, CI and the Vagrantfile use the one provisioning script."""
    for name in ("scripts/provision.sh", ".ci/run"):
        assert (ROOT / name).stat().st_mode & 0o111
    for name in ("Makefile", "Vagrantfile"):
        assert "scripts/provision.sh" in (ROOT / name).read_text(encoding="utf-8")
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
