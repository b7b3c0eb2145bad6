"""Measurements of fabriclab on this machine, side by side with what it is compared with.

One file per measurement, each with ``NAME``, ``SUMMARY`` and ``measure(bench) -> rows``; name it in
`emulator.bench.registry` to add it. What a measurement makes on the machine is owned by a ledger,
so that `fabriclab clean` removes it after any death.
"""
