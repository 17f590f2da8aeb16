"""What clients see of restarts: requests before, between and after them, their answers as one transcript."""
