"""Other programs that osler works with: editors, trainers, test runners."""
