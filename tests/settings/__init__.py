"""Tests of the settings table's readers."""
