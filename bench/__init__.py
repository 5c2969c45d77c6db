"""Comparative benchmarks: each prints ratios measured in one run, on one machine, with both sides alive."""
