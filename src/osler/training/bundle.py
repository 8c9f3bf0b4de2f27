"""The dump of a failing step (placeholder until the writer is in)."""
