"""The listener's side of a mode, in a process of its own in a network of its own.

A mode's listener is a coroutine function `listen(ask, heard)`: it connects, tells `heard` when it
is connected and what comes, and then holds the connection open until it is cancelled.
"""
