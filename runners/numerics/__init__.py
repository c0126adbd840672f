"""Formats, distances and tolerances: the arithmetic behind the correctness panel."""
