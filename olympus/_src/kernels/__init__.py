"""Kernels: functions of blocks of arrays, run for each place of a grid."""
