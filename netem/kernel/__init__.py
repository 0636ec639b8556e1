"""The edge to Linux: namespaces, interfaces, processes, and what of it is possible here."""
