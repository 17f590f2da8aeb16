"""Tests of the control API by the standard library's HTTP client, on free ports."""
