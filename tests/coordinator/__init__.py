"""Groups, offsets, producer ids."""
