import pytest

from ethosu_sdk import feeds
from ethosu_sdk.errors import UsageError
from ethosu_sdk.feeds import ARGMAX, COPY, SAMPLE, STEP, Feed


@pytest.mark.parametrize(
    ("text", "feed"),
    [
        ("output0:input1", Feed(COPY, 1)),
        ("argmax(output2):input0", Feed(ARGMAX, 0, 2)),
        (" argmax( output2[15] , stop=2/7 ) : input0 ", Feed(ARGMAX, 0, 2, 15, stops=(2, 7))),
        (
            "sample(output0, temperature=0.8, top_k=40, seed=18446744073709551615):input3",
            Feed(SAMPLE, 3, temperature=0.8, top_k=40, seed=(1 << 64) - 1),
        ),
        ("sample(output0, scale=0.05):input0", Feed(SAMPLE, 0, scale=0.05)),
        ("step:input1", Feed(STEP, 1)),
    ],
)
def test_feeds_are_read_and_written(text: str, feed: Feed) -> None:
    assert feeds.parse([text]) == (feed,)
    assert feeds.parse([str(feed)]) == (feed,)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["output0"], "not a feed"),
        (["output0:output1"], "not a feed"),
        (["max(output0):input0"], "cannot|can be fed"),
        (["argmax(output0, top_k=3):input0"], "not a setting of argmax"),
        (["sample(output0, temperature=0):input0"], "temperature=0"),
        (["sample(output0, temperature=nan):input0"], "temperature=nan"),
        (["sample(output0, top_k=257):input0"], "top_k=257"),
        (["sample(output0, seed=-1):input0"], "seed=-1"),
        (["sample(output0, seed=1, seed=2):input0"], "twice"),
        (["argmax(output0, stop=1/2/3/4/5):input0"], "4 indices at most"),
        (["output0:input1", "step:input1"], "two feeds"),
        ([f"step:input{number}" for number in range(17)], "17 feeds"),
    ],
)
def test_what_is_no_feed_is_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        feeds.parse(texts)
