"""Kernels and references of attention and normalisation, written with Pallas; names of devices."""
