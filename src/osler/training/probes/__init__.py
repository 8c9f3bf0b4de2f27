"""What is attached to torch, one file per thing watched; each knows how to come off again."""
