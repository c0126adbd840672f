"""The console: what a grader sees, the exchange it reads and the reviews it writes."""
