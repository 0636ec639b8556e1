"""Where speech comes from: synthesis, files, tones, and numbered frames for tests."""

from tenuto.sources.base import MAX_RUN_SIZE, Mark, Source
from tenuto.sources.catalogue import PARAMETERS, find_kind, open_source
from tenuto.sources.clock import ClockSource, clock_payload, read_clock
from tenuto.sources.converted import ConvertedSource
from tenuto.sources.counting import COUNTERS, Counters, CountingSource, read_index
from tenuto.sources.espeak import SpeechSource, open_speech
from tenuto.sources.espeak_engine import shared_engine
from tenuto.sources.file import FileSource, MediaFolder, open_file
from tenuto.sources.formats import Wanted
from tenuto.sources.listing import list_sources
from tenuto.sources.model import ModelSource
from tenuto.sources.pump import PumpTally
from tenuto.sources.readers import FileTally, Readers, shared_readers
from tenuto.sources.stdin import STDIN_MODES, StandardInput, StdinSource, parse_stdin_format
from tenuto.sources.tone import ToneSource

__all__ = [
    "COUNTERS",
    "MAX_RUN_SIZE",
    "PARAMETERS",
    "STDIN_MODES",
    "ClockSource",
    "ConvertedSource",
    "Counters",
    "CountingSource",
    "FileSource",
    "FileTally",
    "Mark",
    "MediaFolder",
    "ModelSource",
    "PumpTally",
    "Readers",
    "Source",
    "SpeechSource",
    "StandardInput",
    "StdinSource",
    "ToneSource",
    "Wanted",
    "clock_payload",
    "find_kind",
    "list_sources",
    "open_file",
    "open_source",
    "open_speech",
    "parse_stdin_format",
    "read_clock",
    "read_index",
    "shared_engine",
    "shared_readers",
]
