"""What the vectors of ``docs/vectors`` are written from: definitions to be read, not results of a run.

Nothing here imports an engine. Each module is about a few rules, and gives its vectors; ``SECTIONS`` says which
of them are in which file. ``docs/generate_vectors.py`` writes the files.
"""
