"""What can go wrong, whose mistake it was, and the code that goes on the wire."""

from tenuto.errors.codes import ErrorCode
from tenuto.errors.exceptions import (
    OperatorError,
    RemoteProtocolError,
    RequestError,
    SourceError,
    TenutoError,
)

__all__ = [
    "ErrorCode",
    "OperatorError",
    "RemoteProtocolError",
    "RequestError",
    "SourceError",
    "TenutoError",
]
