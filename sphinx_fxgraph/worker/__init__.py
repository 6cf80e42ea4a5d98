"""Captures in processes of their own: pool, server, child, sandbox, executors."""
