"""Tokenizers of others: read from the file alone, in bounded memory and time, and what fails says so in one line."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.conftest import KeptFolder
from tests.integration import guide
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.generate import tokenizers
from tests.integration.hostile import watched
from tests.records import printed
from tests.tables import each

pytest.importorskip("pytorch_tokenizers")


def refused(name: str, content: bytes, folder: Path, *words: str) -> None:
    """In less than 2 GiB, with one message and nothing else: the tokenizer is read before the program."""
    (folder / name).write_bytes(content)
    outcome = watched(
        "generate",
        "none.pte",
        "--prompt",
        "w1 w2",
        "--tokenizer",
        name,
        cwd=folder,
        env={"RUST_BACKTRACE": "1"},
    )
    assert_clear(outcome, 3, f"{name} cannot be used as a tokenizer: ", *words)
    assert outcome.err.startswith("error: ")
    assert len(outcome.err.splitlines()) == 2, outcome.err
    assert outcome.peak_bytes < 3 << 29
    assert [path.name for path in folder.iterdir()] == [name]


def test_text_that_a_normalizer_doubles_again_and_again(tmp_path: Path) -> None:
    refused(
        "given.json", tokenizers.replacing("normalizer", 34), tmp_path, "1,024 MiB of memory are the limit"
    )


@each(
    ("name", "content", "words"),
    [
        ("empty.model", b"", "it has not every byte as a token"),
        ("bytes.model", b"YQ== 0\nYg== 1\n", "it has not every byte as a token"),
        ("twice.model", tokenizers.tiktoken() + b"YWI= 0\n", "its ranks are not those from 0 on"),
        ("text.model", tokenizers.tiktoken() + b"no\n", "line 257 is not a token in base64 and its rank"),
        ("long.model", b"YQ== " + b"9" * 5000, "line 1 is not a token in base64 and its rank"),
        ("deep.json", b"[" * 100_000, "invalid type: sequence"),
        ("none.json", b"{}", "cannot be used"),
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


def test_a_file_of_tiktoken_is_read_itself(kept_folder: KeptFolder, tmp_path: Path) -> None:
    """Not what lies in a folder of all users under the digest of its name, of an earlier time or of somebody else."""
    words = guide.commands("generate.md")[0]

    def make(folder: Path) -> None:
        sdk_ok(*words[1:], cwd=folder, timeout_s=900)

    program = kept_folder("generate", make, *words) / "build" / "llama_1m-ethos-u85-256"
    shared = tmp_path / "shared"
    (shared / "data-gym-cache").mkdir(parents=True)
    path = tmp_path / "given.model"
    for name in (path.name, str(path)):
        os.mkfifo(shared / "data-gym-cache" / hashlib.sha1(name.encode()).hexdigest())
    for first in (0, 7):
        path.write_bytes(tokenizers.tiktoken(b"ab", first=first))
        given = ("--prompt", "abc", "--tokenizer", path.name, "--max-tokens", "1", "--simulator", "host")
        outcome = sdk(
            *("generate", program / "llama_1m.pte", *given, "--json", "-o", f"out{first}"),
            cwd=tmp_path,
            env={"TMPDIR": str(shared)},
            timeout_s=120,
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

    from ethosu_sdk.steps.generate import tokenizing

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
        path.write_bytes(
            json.dumps(tokenizers.WORDS).encode() if kind == "json" else tokenizers.tiktoken(b"he", b"hel")
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        theirs = pytorch_tokenizers.get_tokenizer(str(path))
    text = "hello w1 w2 \N{SNOWMAN} " * 30
    with tokenizing.opened(path) as ours:
        assert ours is not None
        tokens = list(ours.encode(text))
        assert tokens[ours.bos is not None :] == theirs.encode(text, bos=False, eos=False)
        assert ours.decode(tokens) == theirs.decode(tokens)
        assert ours.size == theirs.n_words
