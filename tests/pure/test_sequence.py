import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.wire import SEQUENCE_MODULUS, extend, truncate

FULL = st.integers(0, 2**62)


def model(received: int, reference: int) -> int:
    """Of all sequences with these 16 bits the nearest; the later one of two."""
    era = reference // SEQUENCE_MODULUS
    candidates = [(era + step) * SEQUENCE_MODULUS + received for step in (-1, 0, 1)]
    return min((c for c in candidates if c >= 0), key=lambda c: (abs(c - reference), -c))


@given(reference=FULL, received=st.integers(0, SEQUENCE_MODULUS - 1))
def test_extension_is_that_of_a_plain_model(reference: int, received: int) -> None:
    assert extend(received, reference) == model(received, reference)


@given(reference=FULL, distance=st.integers(-32767, 32768))
def test_exact_within_half_the_space(reference: int, distance: int) -> None:
    sequence = reference + distance
    if sequence >= 0:
        assert extend(truncate(sequence), reference) == sequence


@pytest.mark.parametrize(
    ("received", "reference", "sequence"),
    [
        (0, 65535, 65536),
        (65535, 65536, 65535),
        (65535, 0, 65535),
        (32768, 0, 32768),
        (32769, 0, 32769),
        (0, 32768, 65536),
        (0, 32767, 0),
        (65530, 131080, 131066),
        (0, 2**32 - 1, 2**32),
    ],
)
def test_at_the_edges(received: int, reference: int, sequence: int) -> None:
    assert extend(received, reference) == sequence


def test_counting_up_across_three_wraps() -> None:
    reference = 0
    for sequence in range(0, 3 * SEQUENCE_MODULUS + 100, 7):
        reference = extend(truncate(sequence), reference)
        assert reference == sequence
