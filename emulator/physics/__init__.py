"""Named cases that run on the fabric and are held against theory and published tables.

What a case is: `case`. What is expected: `theory` and `sharing` (closed forms), or a table that the
case names. What was measured: `measure`, pure functions of run folders. Which cases there are:
`registry`; each has a file, or shares one with its family, in `cases`.
"""
