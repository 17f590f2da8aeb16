"""Tests of two brokers side by side."""
