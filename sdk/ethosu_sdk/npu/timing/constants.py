"""Constants of the performance model that neither registers nor vela.ini give, each with its source.

What published runs give only together is in `fitted.py`. Nothing depends on a network, an operator's name or a run.
"""

from __future__ import annotations

MAC_DEPTH = 8
"""IFM channels that a MAC step takes of each element of an OFM micro-block. Published: 3x3 convolutions without
latency take (micro-blocks) x 9 x (IFM channels / 8) cycles on Ethos-U85-256 and -512, so that part-kernel-first
walks 9 elements and not the 12 that Vela 5.1.0 charges."""

PART_KERNEL_DEPTH_U85 = 16
"""IFM channels of which part-kernel-first convolutions of Ethos-U85 take whole multiples (ethos-u-vela 5.0.0, where
it chooses between the two orders)."""

DEPTH_FIRST = 32
"""IFM channels of which depth-first convolutions always take whole multiples: the least IFM block
(ethos-u-vela 5.1.0)."""

STEP_ELEMENTS_U55 = 4
"""Kernel elements that Ethos-U55 and Ethos-U65 walk in four cycles where they are walked first, depthwise and
part-kernel-first (ethos-u-vela 5.1.0; published: the difference between MobileNetV2 on Ethos-U55-128 and -256)."""

POOL_CYCLES = 4
"""Cycles per micro-block and kernel element of pooling (ethos-u-vela 5.1.0)."""

DECODER_BYTES_PER_CYCLE = 6.85
"""Encoded weights that one core of the weight decoder reads. Published: an MLP's 507 KB keep the decoder of
Ethos-U85-128 active for 74,000 cycles."""

DECODER_WEIGHTS_PER_CYCLE = 31.5
"""Weights that one core of the decoder makes at most. Published: the same MLP with 95 % of zeros."""

FAST_WEIGHTS_PER_CYCLE = 32
"""Weights of the fast format per cycle and decoder core (ethos-u-vela 5.1.0: 32 with many different weights)."""

READ_EFFICIENCY = 0.8
"""Share of its read buffers that Ethos-U85 keeps busy, and of the bus (ethos-u-vela 5.1.0; published runs: 10,774
beats take 13,353 cycles on a bus without latency)."""

KEPT_IFM_BLOCKS_U55, KEPT_IFM_BLOCKS_U85 = 2, 4
"""IFM blocks that are kept for the next OFM block in depth. Published beats, Ethos-U55 and Ethos-U65: IFMs of one or
two blocks are read once, others for every OFM block (to 0.1 % of MobileNetV2's reads on Ethos-U55 and Ethos-U65).
Ethos-U85, single operators: 2 OFM blocks read an IFM of 8 blocks 1.5 times, 8 read it 4.5 times."""

DEPTHWISE_CHANNELS_U85 = 16
"""Channels that a depthwise operation of Ethos-U85 reads at a time where a block has not all of them. Published:
depthwise 3x3 of 16x16x128 from DRAM takes 24,068 cycles on Ethos-U85-512 in blocks of 32 channels."""

ADAPTER_EXCESS_BEATS = 5.5
"""Beats that pass a timing adapter in each pulse beyond BWCAP, of transactions that it has accepted. Published:
Ethos-U55 reads 113,320 bytes of RNNoise's weights in less than 105,087 cycles through 50 beats (400 bytes) in 400."""

COMMAND_TRIPS = 2
"""Read latencies until the first command of a stream is decoded; after that commands are fetched ahead."""
