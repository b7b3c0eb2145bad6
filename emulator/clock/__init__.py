"""Clocks: model time over the host's clock (live), dilated."""
