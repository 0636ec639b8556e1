"""What happens to a listener whose path dies, changes, rests or comes back: for `bench switch`.

The server and each listener run in processes and networks of their own, with a path of netem
between them. A listener tells what it heard; `figures` makes numbers of that, and each module
beside makes one kind of trouble.
"""
