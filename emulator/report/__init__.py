"""Pictures and pages of run folders: `html.build_report` for one run, `compare` for several.

`data` and `places` take series out of a folder (NumPy only), `charts_*` draw them, `explain` holds
the sentences, the templates hold the layout. Nothing here needs root or the network.
"""
