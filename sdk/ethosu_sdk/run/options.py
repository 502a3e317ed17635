"""The options of `run` and `generate`. The module is imported for every `--help`: it must stay light."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ethosu_sdk.base.boards import BOARD_NAMES
from ethosu_sdk.compile.program_options import DATA, INPUTS, Option, option

if TYPE_CHECKING:
    from ethosu_sdk.compile.pricing_system import PricingSystem


HOST: Final = "host"
FVP = "fvp"
DEVICE: Final = "device"  # by --device alone
SIMULATORS = ("auto", "qemu", FVP, HOST)
OWN: Final = "own"
EXECUTORCH: Final = "executorch"
BOTH = "both"
RUNTIMES = (OWN, EXECUTORCH, BOTH)
ALL_STEPS, LAST_STEP = "all", "last"
DATA_MEMORIES = ("sram", "ddr")  # those that every board has, and the NPU reaches
SENT = (ALL_STEPS, LAST_STEP)
_IDLE_LIMIT_S = 30.0
_DIGESTED_BYTES_PER_S = 0.5e6  # SHA-256 on QEMU, on a busy machine; ten times that on a quiet one
VELA_TIMING = "vela"  # memories as the system configuration has them
BOARD_TIMING = "board"  # behind the timing adapters of the board's profile
LONGEST_S = 604_800.0  # a week: a limit that is never reached is none
TIMEOUT = Option(
    "Wall-clock limit of the run in seconds.", name="--timeout", metavar="S", minimum=0.1, maximum=LONGEST_S
)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` as given on the command line, and what other commands ask of a run. With
    `count_instructions`, a simulator that can counts what the CPU executes: that takes longer. With `split`, one more
    inference runs each NPU operation as a job of its own. `memory_timing` names the timing adapters that modelled
    cycles are for, `priced` is the system that they are for (None: the program's), `core` the processor that a
    program without NPU was compiled for. `on_step` is told of each step of a run without repeats as soon as it is
    done: its number, and by input the indices that feeds chose."""

    inputs: Path | None = option(None, INPUTS)
    data: tuple[Path, ...] = option((), DATA)
    steps: int | None = option(
        None,
        Option(
            "Number of inferences in a row; an input without a leading axis keeps its value.",
            metavar="N",
            minimum=1,
            maximum=65_536,
            shown_default="that of the inputs",
        ),
    )
    feed: tuple[str, ...] = option(
        (),
        Option(
            "Make an input from the outputs of the step before: output0:input1, argmax(output0):input0, "
            "sample(output0, temperature=0.8, top_k=40, seed=1):input0, step:input1; can be given several times.",
            metavar="FROM:INPUT",
            shown_default="none",
        ),
    )
    outputs: str = option(
        ALL_STEPS, Option("Steps whose outputs the board sends; it sends the CRCs of all.", choices=SENT)
    )
    expect: Path | None = option(
        None,
        Option("Expected outputs: output0, output1 …; exit code 7 if the run gives others.", metavar="F.npz"),
    )
    atol: float = option(0.0, Option("Allowed absolute difference from --expect.", minimum=0.0, finite=True))
    rtol: float = option(0.0, Option("Allowed relative difference from --expect.", minimum=0.0, finite=True))
    growth: float = option(
        0.0,
        Option(
            "How much the allowed difference grows with each step of a sequence: step n is allowed 1 + G·n times "
            "--atol and --rtol.",
            metavar="G",
            minimum=0.0,
            finite=True,
        ),
    )
    simulator: str = option(
        "auto",
        Option(
            "Run firmware on QEMU or on Arm's FVP, or ExecuTorch's runtime on this machine (host).",
            choices=SIMULATORS,
        ),
    )
    device: str | None = option(
        None,
        Option(
            "Run on a device that runs the SDK's device firmware: a serial port, or a socket of this machine.",
            metavar="serial:PORT|socket:HOST:PORT",
            shown_default="a simulator",
        ),
    )
    runtime: str = option(
        OWN,
        Option(
            "Runtime on the board: the SDK's firmware (own), Arm's build of ExecuTorch, or both.",
            choices=RUNTIMES,
        ),
    )
    timeout_s: float = option(300.0, TIMEOUT)
    events: str | None = option(
        None,
        Option(
            "PMU events to count; more than 4 (8 on Ethos-U85) need several inferences.",
            metavar="NAME,…",
            shown_default="ExecuTorch's",
        ),
    )
    memory_timing: str = option(
        VELA_TIMING,
        Option(
            "Memories for modelled cycles: those of the system configuration, or behind timing adapters "
            "(those of the board of --system, ExecuTorch's, or a file's).",
            metavar="vela|board|executorch|FILE.toml",
        ),
    )
    fast: bool = option(False, Option("FVP: skip the NPU's timing; its counters are then meaningless."))
    simulated_limit_s: float | None = option(
        None,
        Option(
            "FVP: limit of simulated time in seconds.",
            name="--simulated-limit",
            metavar="S",
            minimum=0.001,
            maximum=LONGEST_S,
        ),
    )
    repeat: int = option(
        1,
        Option(
            "Number of inferences for each set of inputs; all must agree.",
            metavar="N",
            minimum=1,
            maximum=1_000_000,
        ),
    )
    keep_state: bool = option(
        False, Option("Start each repeat from the state of the one before; repeats may then differ.")
    )
    method: str | None = option(
        None,
        Option("The method of the program to run.", metavar="NAME", shown_default="forward, or the only one"),
    )
    script: Path | None = option(
        None, Option("Run the calls of a file in turn, each of a method, in one boot.", metavar="CALLS.toml")
    )
    state: Path | None = option(
        None,
        Option(
            "Begin with a state that --save-state wrote.", metavar="F.npz", shown_default="the program's own"
        ),
    )
    save_state: Path | None = option(
        None, Option("Write the state after the last inference to a file.", metavar="F.npz")
    )
    resident: bool = option(
        False, Option("Load MODEL into a firmware with all kernels instead of building one for it.")
    )
    board: str | None = option(
        None,
        Option(
            "The board to simulate.", choices=tuple(BOARD_NAMES), shown_default="the installed simulator's"
        ),
    )
    data_memory: str | None = option(
        None,
        Option(
            "Memory for the data files of MODEL.pte.",
            name="--data-memory",
            choices=DATA_MEMORIES,
            shown_default="that of the program",
        ),
    )
    allow_spill: bool = option(
        False, Option("Place data that does not fit into the memory mode's SRAM in DDR; the record says so.")
    )
    cpu_cycles: bool = option(
        False, Option("QEMU: count what the CPU executes, and model its cycles with LLVM's scheduling model.")
    )
    cpu_clock_mhz: float | None = option(
        None,
        Option(
            "Clock of the CPU in MHz, for the time of an inference; implies --cpu-cycles.",
            metavar="MHZ",
            minimum=0.001,
            maximum=1e6,
            shown_default="that of --system",
        ),
    )
    count_instructions: bool = False
    split: bool = False
    priced: "PricingSystem | None" = None
    on_step: Callable[[int, Mapping[int, tuple[int, ...]]], None] | None = None
    core: str | None = None

    def idle_timeout_s(self, program: Path) -> float:
        """How long the firmware of the .pte `program`, which it digests first, may neither print nor use the NPU."""
        return min(_IDLE_LIMIT_S + program.stat().st_size / _DIGESTED_BYTES_PER_S, self.timeout_s)


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """What the model continues, as text or as the numbers of `tokens`, and how the next token is chosen. A
    `temperature` of 0 takes the most probable token. `eos` ends the text (None: that of the tokenizer). `context` is
    the number of positions that the model's caches hold (None: their shape says it)."""

    prompt: str | None = option(
        None, Option("Text to continue; needs --tokenizer.", metavar="TEXT", shown_default="none")
    )
    tokens: str | None = option(
        None, Option("Tokens to continue, by number.", metavar="N,N,…", shown_default="none")
    )
    tokenizer: Path | None = option(
        None, Option("Tokenizer: a model of SentencePiece or tiktoken, or tokenizer.json.", metavar="FILE")
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
