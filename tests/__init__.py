"""Tests, and the fakes that they share.

This file makes ``tests`` a package of ours: one of Ryu's dependencies installs a package of that
name too, which would hide a folder without it.
"""
