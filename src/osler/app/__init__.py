"""One module per verb: each composes the parts with records and renderers."""
