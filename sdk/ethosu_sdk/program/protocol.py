"""The firmware↔host protocol, declared once: records on the UART and the input image in DDR.

Records. One line each, beside human log lines::

    ~ethosu <sequence> <type> <payload> <length> <crc32>

`payload` is one JSON object without line breaks, `length` its size in bytes, `crc32` (IEEE 802.3, eight
hexadecimal digits) covers ``<sequence> <type> <payload>``. Sequence numbers start at 0 and have no gaps.

Inferences are numbered from 0 through the whole run. The firmware runs every set of inputs `repeats` times before
it takes the next one: inference n is repeat ``n % repeats`` of set ``n // repeats``. For every inference it reports
the inputs, the counters and the CRC of each output. `data` records with the bytes of an output follow for the first
repeat of a set, and for a later repeat only if the CRC differs from that of the bytes sent last.

The end record has a seal: ``SHA-256(nonce SHA-256(records))`` in hexadecimal digits. `records` is the text
``<sequence> <type> <payload>`` of every record before it, with a line feed behind each. The host makes up a new
nonce for each run, so a log of another run, or one that somebody wrote or changed, does not have the right seal.

Input image. Before the run, the host writes it to the firmware's symbol `input_image`. All words are
little-endian uint32::

    0   magic "EUI1"      4   version          8   total bytes      12  crc32 of everything behind this word
    16  sets of inputs    20  inputs each      24  repeats          28  groups of PMU events
    32  nonce, 16 bytes   48  options           52  offset of the table of pieces, 0: none
    56  pieces            60  offset of the sequence block, 0: none
    64  room for 32 groups of nine words: a count, eight event numbers
    1216 table: one (offset, bytes) pair per set and input; offsets from the image's start, aligned to 16

Repeat k counts the events of group k modulo the number of groups; without groups the firmware chooses the events.
An input that is not a tensor has 0 bytes, and the program's own value is used. The options are bits: 1 asks for
`cpu` records, 2 resets the state before every repeat of a set but its first, 4 sends the output bytes of the last
set only, 8 sends the bytes of the state after the last set.

Sequence block. If there is one, the sets are the steps of a sequence. The block is four words (number of feeds,
number of state tensors, number of the first step, number of calls), then a row of 80 bytes for each feed, a row of
16 bytes for each state tensor, and a row of 16 bytes for each call.

- A call is (number of a loaded method, sets of inputs, 0, 0). Its sets follow those of the call before. The
  firmware begins a call with a `call` record, and then reports in `choice` records what the call takes from the one
  before. Without calls, all sets are for the first method. Methods may have different numbers of inputs: inputs
  that a method does not have are given with 0 bytes.
- A feed computes the value of an input from the outputs of the step before. It writes the value to a place in the
  image, its room, to which the table of the later steps refers. FEED_*_AT are the words of its row. The step that
  chooses one of a feed's stops is the last step of its call.
- A state tensor is (planned buffer, offset in the buffer, bytes, offset in the image of its initial value; 0
  there means the program's). Its CRC is reported after every step.

Pieces are parts of the command streams of delegates (:mod:`ethosu_sdk.npu.stream.pieces`). Each is a triple
(delegate, offset, bytes). If there are pieces, the last repeat of every set runs a delegate piece by piece, with
one job and one `pmu` record for each.

Program header. The host may write a program to the symbol `program_memory` of the resident firmware. The firmware
runs it if these five words are at the symbol `program_header`::

    0   magic "EUP1"      4   version          8   bytes of the program      12  memory mode
    16  crc32 of the words before

The memory mode (PROGRAM_MODES) says where the parts of the program are; with 0 the firmware goes by the names in
the program, which are Vela's own.

Transfer. The device firmware takes program header, program and input image over its UART, in frames of
little-endian words::

    0   magic "EUW1"      4   session          8   kind             12  number
    16  payload bytes     20  crc32 of the words before              24  payload
    behind it: crc32 of everything before

A host makes up a new session for each run. The kinds are

- FRAME_IDENTIFY: the device answers with a `device` record;
- FRAME_OPEN: its payload is WIRE_VERSION, the program header, the bytes of the input image, and the crc32 of the
  content, which is the program with the input image behind it. The session begins, or goes on if the device has it;
- FRAME_CHUNK: piece `number` of the content, WIRE_CHUNK_BYTES of it, or what is left;
- FRAME_START: the device checks the content, and runs it.

The device answers each frame but the first kind with a `transfer` record: the session that it has, a state (WIRE_*),
and the number of the next chunk. A chunk that it has already is taken and not written again; for a damaged frame, or
one that is not the next, the answer is WIRE_AGAIN, and the host sends what was asked for. The host repeats a frame
that is not answered. Between WIRE_RUNNING and WIRE_ENDED, whose value is the exit code, the device prints the records
of the run, and takes nothing. Records of the device have sequence numbers of their own, from its reset on.

A device that has heard nothing for a while sleeps, and loses what arrives first. In front of frames that may find it
asleep the host sends WIRE_WAKE_BYTES zeros.

A simulator of a device lays a mark into memory at the symbol `device_mark` before the firmware starts, so that
nobody takes its figures for measured ones: the magic "EUD1", the crc32 of what follows, and DEVICE_MARK_TEXT_BYTES of
text, the simulator's name and version.

Marks (MARKS) are functions that do nothing. The firmware calls one where its execution passes from one part to
another. The host finds them in the ELF, and a simulator that counts instructions then counts each part
separately.

The firmware's `app/protocol.hpp` is generated from this module: every constant that is a number or a text, in lower
case, and every type of record (:mod:`ethosu_sdk.firmware_build.generated_files`).
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 6
RECORD_PREFIX = "~ethosu"
DATA_CHUNK_BYTES = 768  # output bytes in one `data` record
STATUS_OK = "ok"  # of the end record
STATUS_ERROR = "error"

INPUT_IMAGE_MAGIC = 0x31495545  # "EUI1"
INPUT_IMAGE_VERSION = 5
INPUT_IMAGE_SYMBOL = "input_image"
INPUT_IMAGE_ALIGNMENT = 16
INPUT_IMAGE_NONCE_BYTES = 16
# The bits of the options.
INPUT_IMAGE_COUNTS_CYCLES = 1
INPUT_IMAGE_RESETS_STATE = 2
INPUT_IMAGE_SENDS_LAST = 4
INPUT_IMAGE_SENDS_STATE = 8

INPUT_IMAGE_MAX_EVENTS = 8  # in one group
INPUT_IMAGE_MAX_EVENT_GROUPS = 32
INPUT_IMAGE_EVENT_GROUP_BYTES = 4 + 4 * INPUT_IMAGE_MAX_EVENTS  # a count and event numbers
INPUT_IMAGE_REFERENCE_BYTES = 8  # offset and size of an input
INPUT_IMAGE_PIECE_BYTES = 12  # delegate, offset and size of a piece

# Where the words of the header are.
INPUT_IMAGE_MAGIC_AT = 0
INPUT_IMAGE_VERSION_AT = 4
INPUT_IMAGE_BYTES_AT = 8
INPUT_IMAGE_CRC_AT = 12
INPUT_IMAGE_CRC_COVERS_FROM = 16
INPUT_IMAGE_SETS_AT = 16
INPUT_IMAGE_INPUTS_AT = 20
INPUT_IMAGE_REPEATS_AT = 24
INPUT_IMAGE_EVENT_GROUP_COUNT_AT = 28
INPUT_IMAGE_NONCE_AT = 32
INPUT_IMAGE_OPTIONS_AT = 48
INPUT_IMAGE_PIECES_AT = 52
INPUT_IMAGE_PIECE_COUNT_AT = 56
INPUT_IMAGE_SEQUENCE_AT = 60
INPUT_IMAGE_EVENT_GROUPS_AT = 64
INPUT_IMAGE_HEADER_BYTES = (
    INPUT_IMAGE_EVENT_GROUPS_AT + INPUT_IMAGE_EVENT_GROUP_BYTES * INPUT_IMAGE_MAX_EVENT_GROUPS
)

SEQUENCE_HEADER_BYTES = 16
SEQUENCE_FEED_BYTES = 80
SEQUENCE_STATE_BYTES = 16
SEQUENCE_CALL_BYTES = 16
SEQUENCE_MAX_FEEDS = 16
SEQUENCE_MAX_STATES = 4096
SEQUENCE_MAX_CALLS = 4096
MAX_METHODS = 8  # of one firmware
MAX_DATA_FILES = 8  # of one firmware

# The forms of a feed.
FEED_COPY = 1  # the bytes of the output
FEED_ARGMAX = 2  # the index of the largest number of each of its last rows
FEED_SAMPLE = 3  # an index drawn by the numbers of each of its last rows
FEED_STEP = 4  # the value before, plus the number of its elements
FEED_MAX_ROWS = 64  # indices of one input
FEED_MAX_TOP_K = 256
FEED_MAX_STOPS = 4
# Where the words of a feed's row are.
FEED_FORM_AT = 0
FEED_INPUT_AT = 4
FEED_OUTPUT_AT = 8
FEED_ROW_AT = 12  # row of the output, or FEED_LAST_ROWS
FEED_ROOM_AT = 16  # offset in the image
FEED_ROOM_BYTES_AT = 20
FEED_FIRST_AT = 24  # the first step that uses the value
FEED_FACTOR_AT = 28  # of samples: the factor of the weights, a float32
FEED_TOP_K_AT = 32  # of samples: how many of the largest are drawn from, 0: all
FEED_SEED_AT = 36  # of samples: two words, the low one first
FEED_STOP_COUNT_AT = 44
FEED_STOPS_AT = 48
FEED_END_AT = 64  # the last step that it computes a value for, or FEED_NO_END
FEED_TAKES_AT = 68  # whether the first value comes from the last step of the call before
FEED_LAST_ROWS = 0xFFFF_FFFF  # the last rows: one for each element of the input
FEED_NO_END = 0xFFFF_FFFF  # every later step

PROGRAM_HEADER_MAGIC = 0x31505545  # "EUP1"
PROGRAM_HEADER_VERSION = 2
PROGRAM_HEADER_SYMBOL = "program_header"
PROGRAM_MEMORY_SYMBOL = "program_memory"
PROGRAM_MODE_BY_NAME = 0
PROGRAM_MODE_SRAM_ONLY = 1
PROGRAM_MODE_SHARED_SRAM = 2
PROGRAM_MODE_DEDICATED_SRAM = 3
# By the names of the NPU's register settings: a MemoryMode of firmware/npu/settings.hpp.
PROGRAM_MODES = {
    "sram_only": PROGRAM_MODE_SRAM_ONLY,
    "shared_sram": PROGRAM_MODE_SHARED_SRAM,
    "dedicated_sram": PROGRAM_MODE_DEDICATED_SRAM,
}

WIRE_VERSION = 1
WIRE_BAUD = 115_200
WIRE_CHUNK_BYTES = 1024
WIRE_WAKE_BYTES = 256  # 22 ms: more than a tick of the device's clock
FRAME_MAGIC = 0x31575545  # "EUW1"
FRAME_HEADER_BYTES = 24
FRAME_IDENTIFY = 1
FRAME_OPEN = 2
FRAME_CHUNK = 3
FRAME_START = 4
FRAME_OPEN_BYTES = 32  # the payload of FRAME_OPEN
WIRE_READY = "ready"  # a session is open
WIRE_TAKEN = "taken"
WIRE_AGAIN = "again"
WIRE_REFUSED = "refused"  # `detail` says why
WIRE_RUNNING = "running"
WIRE_ENDED = "ended"
DEVICE_MARK_SYMBOL = "device_mark"
DEVICE_MARK_MAGIC = 0x31445545  # "EUD1"
DEVICE_MARK_TEXT_BYTES = 56
DEVICE_MARK_BYTES = 8 + DEVICE_MARK_TEXT_BYTES

# How records call the instructions of a program: kind → the member of ExecuTorch's InstructionArguments union. The
# firmware's half is `instruction_kind` in firmware/runtime/method.hpp.
INSTRUCTION_KINDS = {
    "kernel": "KernelCall",
    "delegate": "DelegateCall",
    "move": "MoveCall",
    "jump": "JumpFalseCall",
    "free": "FreeCall",
}

# Marks: function of firmware/hal/marks.hpp → what begins there. In an inference `operator` begins each instruction of
# the program, and a last time the way to `end`. After an interrupt, `back` returns to the part that it interrupted.
MARK_PREFIX = "ethosu_mark_"
MARKS = {
    "operator": "the interpreter's part of an instruction: finds its arguments and checks them",
    "kernel": "the kernel",
    "runtime": "the interpreter again",
    "copy_in": "a delegate's inputs are copied to where the NPU reads them",
    "driver_start": "the driver programs the NPU and its counters",
    "wait": "the NPU runs, and the processor sleeps",
    "driver_stop": "the driver reads the counters",
    "copy_out": "a delegate's outputs are copied from where the NPU wrote them",
    "report": "records are printed: not part of an inference",
    "interrupt": "the NPU's interrupt",
    "clock": "the interrupt of the firmware's clock, by which it limits its waits",
    "back": "the end of an interrupt",
    "end": "the end of an inference",
}


@dataclass(frozen=True)
class Field:
    """One member of a record's payload: its JSON name and the Python type of its value."""

    name: str
    kind: type


@dataclass(frozen=True)
class RecordType:
    """One kind of record, its fields, and how often a complete run prints it."""

    name: str
    fields: tuple[Field, ...]
    purpose: str


def _record(name: str, purpose: str, /, **fields: type) -> RecordType:
    return RecordType(name, tuple(Field(key, kind) for key, kind in fields.items()), purpose)


RECORD_TYPES: dict[str, RecordType] = {
    row.name: row
    for row in (
        _record(
            "device",
            "a device, after its reset and when asked: its firmware, and the simulator that stands for it, if any",
            wire=int,
            firmware=str,
            board=str,
            code_bytes=int,
            code_sha256=str,
            simulator=str,
        ),
        _record(
            "transfer",
            "a device's answer to a frame; `value` is the next chunk, or the exit code of a run that ended",
            session=int,
            state=str,
            value=int,
            detail=str,
        ),
        _record(
            "boot",
            "first of all: who runs, and the SHA-256 of the model as the firmware computed it",
            protocol=int,
            firmware=str,
            board=str,
            model_bytes=int,
            model_sha256=str,
        ),
        _record(
            "data_file",
            "after it, for each data file of the model: its SHA-256 as the firmware computed it",
            index=int,
            bytes=int,
            sha256=str,
        ),
        _record("npu", "the NPU's ID and CONFIG registers as read", id=int, config=int),
        _record("method", "a loaded method", name=str, inputs=int, outputs=int, delegates=int),
        _record("call", "a call of a script begins", number=int, method=str),
        _record("memory", "use of one memory pool", name=str, used_bytes=int, size_bytes=int),
        _record("input", "an input as it arrived", inference=int, index=int, bytes=int, crc32=str),
        _record(
            "operator",
            "one executed instruction of the first inference; only kernels and delegates have a name",
            inference=int,
            instruction=int,
            kind=str,
            name=str,
        ),
        _record(
            "cpu",
            "cycles of the processor's clock for the instruction before, when the input image asks for them",
            inference=int,
            instruction=int,
            cycles=int,
        ),
        _record(
            "pmu",
            "counters around one NPU job, a delegate call or a piece of it; `counters` holds [event, value] pairs",
            inference=int,
            instruction=int,
            cycles=int,
            overflow=int,
            counters=list,
        ),
        _record("inference", "one inference is done", inference=int, delegate_calls=int),
        _record(
            "output",
            "an output tensor; unless it repeats, its bytes follow in `data` records",
            inference=int,
            index=int,
            dtype=str,
            shape=list,
            bytes=int,
            crc32=str,
        ),
        _record("data", "a piece of an output, base64", inference=int, index=int, offset=int, base64=str),
        _record(
            "choice",
            "the indices that a feed chose from an inference's outputs, for an input of the next",
            inference=int,
            input=int,
            values=list,
        ),
        _record(
            "state",
            "a tensor of the program's state after an inference",
            inference=int,
            index=int,
            bytes=int,
            crc32=str,
        ),
        _record(
            "state_data", "a piece of it after the last inference, base64", index=int, offset=int, base64=str
        ),
        _record("error", "the firmware refused or failed", stage=str, code=str, detail=str),
        _record(
            "fault",
            "a processor exception ended the run",
            cause=str,
            pc=int,
            lr=int,
            sp=int,
            xpsr=int,
            cfsr=int,
            hfsr=int,
            address=int,
        ),
        _record(
            "end",
            "the last record: `records` counts all, this one included; `seal` covers those before it",
            status=str,
            inferences=int,
            records=int,
            seal=str,
        ),
    )
}
