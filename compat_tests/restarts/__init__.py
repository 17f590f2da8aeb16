"""What clients see of restarts: requests before, between and after them; the answers form one transcript."""
