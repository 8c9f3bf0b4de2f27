"""The engine of the case library: reads case folders, runs both sides of each under osler, and judges what came out."""
