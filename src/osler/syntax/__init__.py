"""Reading Python source: facts about a file."""
