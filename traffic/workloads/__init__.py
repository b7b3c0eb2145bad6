"""Workloads as tasks with dependencies: training, inference, background. Pure and seeded."""
