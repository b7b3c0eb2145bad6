"""What two run folders have in common, as text for a terminal. PURE."""

from __future__ import annotations

from emulator.results.sameness import NOT_COMPARED, RESULTS, SCHEDULE, Sameness, short
from emulator.results.table import align

Names = tuple[str, str]
"""What the two runs are called."""


def hash_table(found: Sameness, who: Names) -> str:
    """Both hashes of both runs, and whether they are equal."""
    rows = [["", *who, ""], ["run", *(str(run.manifest.get("run")) for run in found.runs), ""]]
    for name in (SCHEDULE, RESULTS):
        verdict = "equal" if found.same(name) else "NOT EQUAL"
        rows.append([f"hashes.{name}", *(short(value) for value in found.hashes(name)), verdict])
    return align(rows)


def dependence(found: Sameness, who: Names) -> str:
    """What differs of that which the results depend on, or that nothing does."""
    if not found.recorded:
        return "Not both runs say what their results depend on; one is of an earlier version."
    if not found.depends_on:
        return "All that the results depend on is the same."
    rows = [[c.what, short(c.first), short(c.second)] for c in found.depends_on]
    return "What the results depend on is not the same:\n\n" + align([["", *who], *rows])


def file_lines(found: Sameness) -> str:
    """How many files are equal, and what differs in the others."""
    equal = len(found.files) - len(found.differing)
    left_out = ", ".join(f"{name} ({why})" for name, why in NOT_COMPARED.items())
    lines = [f"{equal} of {len(found.files)} files are equal; not compared: {left_out}."]
    lines += [f"  {file.name}: {'; '.join(file.details)}" for file in found.differing]
    return "\n".join(lines)
