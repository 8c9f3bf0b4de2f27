"""What is kept: journals, runs in SQLite, curves and heat maps in Parquet."""
