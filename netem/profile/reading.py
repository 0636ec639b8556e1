"""A profile's document read into its meaning."""

from types import MappingProxyType

from netem.profile.conditions import Profile
from netem.profile.directions import read_direction
from netem.profile.document import Document
from netem.profile.layers import Layers, Lookup, lay
from netem.profile.middle import read_block, read_nat, read_police, read_port

__all__ = ["read_profile"]


def read_profile(document: Document, lookup: Lookup) -> Profile:
    """The profile that `document` describes, over those it extends, which `lookup` finds.

    Raises `ProfileError`, and nothing else, whatever the document holds.
    """
    layers = lay(document, lookup)
    return Profile(
        name=document.name,
        summary=layers.summary,
        up=read_direction(layers.up),
        down=read_direction(layers.down),
        block=read_block(layers.udp),
        police=read_police(layers.udp),
        udp_port=read_port(layers.udp),
        nat=read_nat(layers.nat),
        sources=MappingProxyType(_sources(layers)),
    )


def _sources(layers: Layers) -> dict[str, str]:
    """Each value's source by its key: `delay` where both directions say the same of the same."""
    sources: dict[str, str] = {}
    for key in dict.fromkeys((*layers.up, *layers.down)):
        up, down = layers.up.get(key), layers.down.get(key)
        if up and down and (up.value, up.source) == (down.value, down.source):
            sources[key] = up.source or ""
            continue
        for way, said in (("up", up), ("down", down)):
            if said:
                sources[f"{way}.{key}"] = said.source or ""
    for section, layer in (("udp", layers.udp), ("nat", layers.nat)):
        for key, said in layer.items():
            sources[f"{section}.{key}"] = said.source or ""
    return sources
