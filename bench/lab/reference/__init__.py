"""Bare senders and their listener, on aioquic alone: what the product is compared with.

Nothing of Tenuto's and no private attribute of aioquic's: what an engineer writes who has that
library and its examples.
"""
