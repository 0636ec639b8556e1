import pytest

from tenuto.errors import (
    ErrorCode,
    OperatorError,
    RemoteProtocolError,
    RequestError,
    SourceError,
    TenutoError,
)


def test_codes_are_a_closed_set_of_distinct_names_and_numbers() -> None:
    names = [code.value for code in ErrorCode]
    assert len(set(names)) == len({code.h3_error for code in ErrorCode}) == len(names)
    assert all(name == name.lower() and " " not in name for name in names)
    assert all(400 <= code.status < 600 for code in ErrorCode)


def test_stream_codes_stay_out_of_the_reserved_ranges() -> None:
    for code in ErrorCode:
        assert 0x54454E01 <= code.h3_error <= 0x54454EFF
        assert (code.h3_error - 0x21) % 0x1F  # RFC 9114 section 8.1


def test_a_code_is_found_by_its_name() -> None:
    assert ErrorCode("too-old") is ErrorCode.TOO_OLD  # type: ignore[call-arg]
    assert ErrorCode.TOO_OLD.status == 410
    assert ErrorCode.TOO_OLD.h3_error == 0x54454E0A


def test_text_names_the_thing_and_the_remedy() -> None:
    error = RequestError(
        ErrorCode.TOO_OLD, "frame 3 is no longer held", remedy="go on from 9", detail={"first": 9}
    )
    assert str(error) == "frame 3 is no longer held. go on from 9"
    assert (error.code, error.message, error.remedy) == (
        ErrorCode.TOO_OLD,
        "frame 3 is no longer held",
        "go on from 9",
    )
    assert error.detail == {"first": 9}
    assert str(RequestError(ErrorCode.INTERNAL, "no remedy")) == "no remedy"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RemoteProtocolError("bytes"), ErrorCode.BAD_RECORD),
        (SourceError("engine", remedy="restart it"), ErrorCode.SOURCE_FAILED),
        (OperatorError("port", remedy="choose another"), ErrorCode.NOT_CONFIGURED),
    ],
)
def test_each_owner_has_its_code(error: TenutoError, code: ErrorCode) -> None:
    assert isinstance(error, TenutoError)
    assert error.code is code
    assert error.detail == {}
    assert str(error).startswith(error.message)
    assert str(error).endswith(error.remedy)
