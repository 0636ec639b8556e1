"""A machine with a real netem, emulated, as a router between two namespaces."""
