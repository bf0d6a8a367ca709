"""Workloads, the load worker, metrics, statistics, quality check, sweep planning."""
