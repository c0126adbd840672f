"""Comparing two implementations by the judge's clock: batches, process pairs, bootstrap, the machine's lock."""
