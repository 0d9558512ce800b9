"""Bytes <-> values for everything that goes over a network: frames of TCP, packets of UDP, errors with numbers."""
