"""Routing policies: pure code that shares out hash buckets over the ways to a destination."""
