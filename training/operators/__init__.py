"""Corruption operators. Each yields a negative and a label-preserving twin of the same surface change."""
