"""Estimators of label noise, each in its own module; all of them see one block of rows at a time.

Blocks are transposed, one row per class, so that sums over the classes run along contiguous memory.
"""
