"""Judging: everything that runs a submission, apart from any screen."""
