"""Records: the same self-delimiting bytes on every transport (docs/wire-format.md). Pure."""

from tenuto.wire.decoder import RecordDecoder
from tenuto.wire.encoder import RecordEncoder
from tenuto.wire.records import (
    MEDIA_TYPE,
    VERSION,
    Copy,
    End,
    Format,
    Gap,
    Keepalive,
    Mark,
    Notice,
    Record,
    RecordType,
    Unknown,
)
from tenuto.wire.sequence import SEQUENCE_MODULUS, extend, truncate

__all__ = [
    "MEDIA_TYPE",
    "SEQUENCE_MODULUS",
    "VERSION",
    "Copy",
    "End",
    "Format",
    "Gap",
    "Keepalive",
    "Mark",
    "Notice",
    "Record",
    "RecordDecoder",
    "RecordEncoder",
    "RecordType",
    "Unknown",
    "extend",
    "truncate",
]
