"""Readers of public request traces in their original form."""
