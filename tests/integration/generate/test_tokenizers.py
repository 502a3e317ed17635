"""Tokenizers of others: read from the file alone, in bounded memory and time, and what fails says so in one line."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import Outcome, assert_clear, sdk, sdk_ok
from tests.integration.generate import tokenizers
from tests.integration.hostile import Watched, watched
from tests.records import printed
from tests.tables import each

pytest.importorskip("pytorch_tokenizers")


# A program that goes on with tokens, with what is probable behind each of them.
TABLE = """
import torch

class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rows = torch.nn.Embedding(600, 600)

    def forward(self, token):
        return self.rows(token)

example_inputs = (torch.zeros(1, 1, dtype=torch.int64),)
"""


def refused(
    name: str, content: bytes, folder: Path, *words: str, run: Callable[..., Outcome] = sdk
) -> Outcome:
    """With one message and nothing else: the tokenizer is read before the program."""
    (folder / name).write_bytes(content)
    outcome = run(
        *("generate", "none.pte", "--prompt", "w1 w2", "--tokenizer", name),
        cwd=folder,
        env={"RUST_BACKTRACE": "1"},
    )
    assert_clear(outcome, 3, f"{name} cannot be used as a tokenizer: ", *words)
    assert outcome.err.startswith("error: ")
    assert len(outcome.err.splitlines()) == 2, outcome.err
    assert [path.name for path in folder.iterdir()] == [name]
    return outcome


def test_a_tokenizer_that_takes_all_memory(tmp_path: Path) -> None:
    content = tokenizers.hugging_face(padding=tokenizers.padding(1 << 30))
    outcome = refused("given.json", content, tmp_path, "1,024 MiB of memory are the limit", run=watched)
    assert isinstance(outcome, Watched)
    assert outcome.peak_bytes < 3 << 29


@each(
    ("part", "step", "words"),
    [
        (
            "normalizer",
            tokenizers.DOUBLES,
            "its normalizer and pre_tokenizer can make more than 16,384 letters of one",
        ),
        ("normalizer", {"type": "ByteLevel"}, "16,384 letters of one, in 41 steps"),
        ("decoder", tokenizers.DOUBLES, "its decoder can make more than 16,384 letters of one, in 40 steps"),
        ("decoder", {"type": "BPEDecoder", "suffix": ""}, "its decoder can make"),
        (
            "decoder",
            {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True},
            "its decoder can",
        ),
        ("decoder", {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "w"}, "its decoder can make"),
        ("post_processor", tokenizers.TWICE, "its post_processor can make more than 16,384 tokens of one"),
    ],
)
def test_steps_in_a_row_that_double_a_text(
    part: str, step: dict[str, Any], words: str, tmp_path: Path
) -> None:
    refused("given.json", tokenizers.in_a_row(part, step, 40), tmp_path, words)


@each(
    ("name", "content", "words"),
    [
        ("empty.model", b"", "it has not every byte as a token"),
        ("bytes.model", b"YQ== 0\nYg== 1\n", "it has not every byte as a token"),
        ("twice.model", tokenizers.tiktoken() + b"YWI= 0\n", "its ranks are not those from 0 on"),
        ("text.model", tokenizers.tiktoken() + b"no\n", "line 257 is not a token in base64 and its rank"),
        ("long.model", b"YQ== " + b"9" * 5000, "line 1 is not a token in base64 and its rank"),
        ("deep.json", b"[" * 100_000, "it is no JSON of a tokenizer: "),
        ("nested.json", b'{"model":' + b"[" * 100_000, "cannot be used"),
        ("none.json", b"{}", "cannot be used"),
        (
            "many.json",
            tokenizers.in_a_row("decoder", {"type": "Fuse"}, 2000),
            "its decoder has 2,000 steps, 1,024 at most can be used",
        ),
        (
            "panic.json",
            tokenizers.hugging_face(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(1+1+)+x"},
                    "behavior": "Isolated",
                    "invert": False,
                },
                normalizer={"type": "Replace", "pattern": {"String": "w1"}, "content": "1" * 60},
            ),
            "PanicException",
        ),
    ],
)
def test_what_is_no_tokenizer_is_told_in_one_line(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    refused(name, content, tmp_path, words)


def test_a_file_of_tiktoken_is_read_itself(tmp_path: Path) -> None:
    """Not what lies in a folder of all users under the digest of its name, of an earlier time or of somebody else."""
    (tmp_path / "table.py").write_text(TABLE)
    options = ("--no-delegate", "--quantize", "none", "--no-check", "--target", "ethos-u55-128")
    sdk_ok("compile", "table.py", *options, "-o", "made", cwd=tmp_path)
    shared = tmp_path / "shared"
    (shared / "data-gym-cache").mkdir(parents=True)
    path = tmp_path / "given.model"
    for name in (path.name, str(path)):
        os.mkfifo(shared / "data-gym-cache" / hashlib.sha1(name.encode()).hexdigest())
    for first in (0, 7):
        path.write_bytes(tokenizers.tiktoken(b"ab", first=first))
        given = ("--prompt", "abc", "--tokenizer", path.name, "--max-tokens", "1", "--simulator", "host")
        outcome = sdk(
            *("generate", "made/table.pte", *given, "--json", "-o", f"out{first}"),
            cwd=tmp_path,
            env={"TMPDIR": str(shared)},
        )
        record = printed(outcome)
        assert record["prompt"] == [257, 256, (ord("c") - first) % 256]
        assert record["text"]["prompt"] == "<|begin_of_text|>abc"
        (read,) = [row for row in record["provenance"]["inputs"] if row["role"] == "tokenizer"]
        assert read["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(list(shared.rglob("*"))) == 3


@pytest.mark.parametrize("kind", ["json", "tiktoken", "sentencepiece"])
def test_tokens_are_those_of_the_package(kind: str, tmp_path: Path) -> None:
    import io

    import pytorch_tokenizers
    import sentencepiece

    from ethosu_sdk.run import tokenizing

    path = tmp_path / f"given.{kind}"
    if kind == "sentencepiece":
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["hello world abc w1 w2"] * 50),
            model_writer=made,
            vocab_size=20,
            model_type="bpe",
            minloglevel=2,
        )
        path.write_bytes(made.getvalue())
    else:
        path.write_bytes(tokenizers.LLAMAS if kind == "json" else tokenizers.tiktoken(b"he", b"hel"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        theirs = pytorch_tokenizers.get_tokenizer(str(path))
    text = "hello w1 w2 \N{SNOWMAN} " * 30
    with tokenizing.opened_tokenizer(path) as ours:
        assert ours is not None
        tokens = list(ours.encode(text))
        assert tokens[ours.bos is not None :] == theirs.encode(text, bos=False, eos=False)
        assert ours.decode(tokens) == theirs.decode(tokens)
        assert ours.size == theirs.n_words
