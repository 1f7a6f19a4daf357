"""cli of the worker."""
