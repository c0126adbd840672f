"""Triton's interpreter, made exact where it is wrong, faster where that is safe, and watched where a run is checked.

Triton keeps one builder that every language construct goes through. :mod:`.builder` gives it a class of our own; the
other modules hold one idea each: number formats, reductions, memory accesses, races, unwritten operands, launches,
autotuning, what ``libdevice`` offers.
"""
