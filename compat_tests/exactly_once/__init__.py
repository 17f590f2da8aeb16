"""Programs and clients that work exactly once, killed in the middle of their transactions."""
