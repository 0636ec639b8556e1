"""Whatever the samples are, they become 16-bit PCM of the wanted rate and channels. Pure."""

from tenuto.convert.converter import Converter, Shape
from tenuto.convert.mixing import mixing_matrix
from tenuto.convert.resampler import Resampler, resampled_length
from tenuto.convert.samples import Encoding, SampleDecoder, decode_floats, decode_integers

__all__ = [
    "Converter",
    "Encoding",
    "Resampler",
    "SampleDecoder",
    "Shape",
    "decode_floats",
    "decode_integers",
    "mixing_matrix",
    "resampled_length",
]
