"""The engines of this project as subjects of the vectors in ``docs/vectors``."""
