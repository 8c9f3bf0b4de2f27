"""The checks: one module a rule, each with `RULE`, `CALLS` and `check`.

`CALLS` are last names of calls of which a file must hold at least one, or nothing can be found in it; empty: always.
"""
