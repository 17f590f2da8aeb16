"""Bytes that nobody meant: whatever comes in, an answer that can be read goes out, or the connection ends."""
