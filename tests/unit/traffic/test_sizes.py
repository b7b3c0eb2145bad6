"""Flow-size distributions: both notations, both ends, and files that are wrong (case F20)."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean

import pytest

from topologies.errors import SpecError
from traffic.workloads.sizes import BUILT_IN, fixed, read_cdf


def write(folder: Path, text: str) -> Path:
    """A distribution file with this content."""
    file = folder / "sizes.txt"
    file.write_text(text, encoding="utf-8")
    return file


def test_percent_and_fraction_are_the_same_distribution(tmp_path: Path) -> None:
    """Blank-separated percent and comma-separated fractions with a header give equal points."""
    percent = read_cdf(write(tmp_path, "0 0\n10000 15\n30000 100\n"), "sizes_file")
    fraction = read_cdf(write(tmp_path, "size,cdf\r\n0,0\r\n10000,0.15\r\n30000,1"), "sizes_file")
    assert percent == fraction
    assert percent.shares == (0, 0.15, 1)


def test_comments_and_percent_signs(tmp_path: Path) -> None:
    """Comments, empty lines and percent signs are read over."""
    cdf = read_cdf(write(tmp_path, "# web\n\n100 50%  # half\n200\t100%\n"), "sizes_file")
    assert cdf.sizes_bytes == (100, 200)
    assert cdf.shares == (0.5, 1)


def test_quantiles_interpolate_between_points(tmp_path: Path) -> None:
    """Up to the first share it is the first size; between points it is linear."""
    cdf = read_cdf(write(tmp_path, "100 20\n300 60\n300 80\n1100 100\n"), "sizes_file")
    assert [cdf.quantile(q) for q in (0, 0.2, 0.4, 0.6, 0.7, 0.9, 1)] == [
        100, 100, 200, 300, 300, 700, 1100
    ]  # fmt: skip
    assert cdf.mean_bytes == pytest.approx(0.2 * 100 + 0.4 * 200 + 0.2 * 300 + 0.2 * 700)


@pytest.mark.parametrize("cdf", BUILT_IN.values(), ids=lambda cdf: cdf.name)
def test_draws_have_the_mean_of_the_distribution(cdf: object) -> None:
    """Draws are at least 1 byte, at most the largest size, and average to the mean."""
    cdf = BUILT_IN[cdf.name]  # type: ignore[attr-defined]
    rng = random.Random(1)
    drawn = [cdf.draw(rng) for _ in range(60_000)]
    assert min(drawn) >= 1
    assert max(drawn) <= cdf.sizes_bytes[-1]
    assert fmean(drawn) == pytest.approx(cdf.mean_bytes, rel=0.05)


def test_web_search_mean() -> None:
    """The web search distribution has a mean of 1.7 MB (DCTCP paper: about 1.6 MB)."""
    assert BUILT_IN["websearch"].mean_bytes == pytest.approx(1.7e6, rel=0.02)


def test_fixed_size() -> None:
    """A fixed size is drawn always."""
    rng = random.Random(1)
    assert {fixed(4096).draw(rng) for _ in range(20)} == {4096}
    assert fixed(4096).mean_bytes == 4096


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no line with a size and a share"),
        ("size cdf\n", "has no line with a size and a share"),
        ("0 0\n10 97\n", r"sizes.txt:2: sizes_file: 97.0 is the last share, which must be 100"),
        ("0 0\n10 50\n20 40\n30 100\n", r"sizes.txt:3: sizes_file: '20 40' falls"),
        ("0 0\n20 50\n10 100\n", r"sizes.txt:3: sizes_file: '10 100' falls"),
        ("-1 0\n20 100\n", r"sizes.txt:1: sizes_file: '-1 0' falls"),
        ("0 0\nten 50\n20 100\n", r"sizes.txt:2: sizes_file: 'ten 50' is not a size and a share"),
        ("size cdf\n\na b\n0 0\n20 100\n", r"sizes.txt:3: sizes_file: 'a b' is not a size"),
        ("0 0\n1 2 3\n20 100\n", r"sizes.txt:2: sizes_file: '1 2 3' is not a size and a share"),
        ("0 0\n5 nan\n20 100\n", r"sizes.txt:2: sizes_file: '5 nan' is not a size"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    """A distribution that ends at 97, falls or is no distribution is refused with its line."""
    with pytest.raises(SpecError, match=message):
        read_cdf(write(tmp_path, text), "sizes_file")


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file and a binary one are errors with the key path."""
    with pytest.raises(SpecError, match=r"^sizes_file: .*No such file"):
        read_cdf(tmp_path / "none.txt", "sizes_file")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="is not a text file"):
        read_cdf(tmp_path / "binary", "sizes_file")
