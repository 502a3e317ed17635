"""The options of `generate` alone. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.program_options import Option, option


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """What the model continues, as text or as the numbers of `tokens`, and how the next token is chosen.

    A `temperature` of 0 takes the most probable token. `eos` ends the text (None: that of the tokenizer). `context`
    is the number of positions that the model's caches hold (None: their shape says it).
    """

    prompt: str | None = option(
        None, Option("Text to continue; needs --tokenizer.", metavar="TEXT", shown_default="none")
    )
    tokens: str | None = option(
        None, Option("Tokens to continue, by number.", metavar="N,N,…", shown_default="none")
    )
    tokenizer: Path | None = option(
        None,
        Option("Tokenizer: a model of SentencePiece or tiktoken, or tokenizer.json.", metavar="FILE"),
    )
    max_tokens: int = option(
        32, Option("Number of tokens to generate at most.", metavar="N", minimum=1, maximum=65_536)
    )
    temperature: float = option(
        0.0, Option("0 takes the most probable token; a higher value draws one.", minimum=0.0, maximum=1e6)
    )
    top_k: int | None = option(
        None,
        Option(
            "Draw from the K most probable tokens.", metavar="K", minimum=1, maximum=256, shown_default="all"
        ),
    )
    seed: int = option(0, Option("Seed of the drawn tokens.", metavar="N", minimum=0, maximum=2**64 - 1))
    eos: int | None = option(
        None,
        Option("Stop after this token.", metavar="N", minimum=0, shown_default="the tokenizer's, if any"),
    )
    context: int | None = option(
        None,
        Option(
            "Positions that the model's caches hold.",
            metavar="N",
            minimum=1,
            shown_default="those of the caches in the compilation's record",
        ),
    )
    perplexity: Path | None = option(
        None,
        Option(
            "Also measure the model's perplexity on this text; without --tokenizer, on its tokens by number.",
            metavar="FILE.txt",
        ),
    )
