"""Fuzzing: ``python -m fuzz`` runs the targets of :mod:`fuzz.targets`, and ``fuzz/README.md`` says how."""
