"""The headless twin: one module a verb, each with ``arguments(parser)`` and ``run(args)``; they import lazily."""
