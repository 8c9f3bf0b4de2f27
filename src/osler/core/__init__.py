"""Plain data and logic: rules, findings, diagnosis, settings, reports. No I/O, no torch."""
