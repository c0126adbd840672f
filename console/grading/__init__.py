"""Grading: rubric, score, suggestions, draft, review. Pure data and functions: no screens, no git, no processes."""
