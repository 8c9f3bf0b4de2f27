"""Tables, labels, splits, drift and sources: what is wrong with the data, before or beside a training.

Nothing is imported here: each check imports what it needs when it is called.
"""
