"""What the vectors of ``docs/vectors`` are written from: definitions to be read, not results of a run.

No engine runs here. Each module is about a few rules, and gives their vectors; ``docs/generate_vectors.py``
says which of them are in which file, and writes it.
"""
