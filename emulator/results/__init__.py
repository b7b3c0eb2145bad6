"""The run folder: what is written while a run goes, and how it is read afterwards.

`columns` says which files and columns there are, `files` writes bytes safely, `store` is the
writer's side, `reader` the reader's side, `summary` and `table` are pure.
"""
