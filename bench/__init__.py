"""Benchmarks, one module each: `python -m bench` lists them."""
