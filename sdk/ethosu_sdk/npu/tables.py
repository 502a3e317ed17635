"""The registers and commands of Ethos-U, as data: opcodes, bit fields, memory-mapped registers."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.base.targets import Generation

# Opcodes and fields of the command stream.
#
# One line per command: opcode, families (``u55`` stands for Ethos-U55 and Ethos-U65), name, and the fields with
# their bits. A word's opcode is in bits 9:0; commands of one word carry a parameter in bits 31:16, those of two
# words a payload in bits 63:32 as well (bits are counted over the pair). Names and bits are those of the register
# headers in ethos-u-vela 5.1.0 (Apache-2.0).

# Commands of one word.
ONE_WORD = """
0x000 both  OP_STOP                  mask[31:16]
0x001 both  OP_IRQ                   mask[31:16]
0x002 u55   OP_CONV
0x002 u85   OP_CONV                  weights_ifm2[16]
0x003 both  OP_DEPTHWISE
0x005 both  OP_POOL                  pooling_mode[18:16]
0x006 both  OP_ELEMENTWISE           elementwise_mode[21:16]
0x007 u85   OP_RESIZE                resize_mode[17:16]
0x010 both  OP_DMA_START
0x011 u55   OP_DMA_WAIT              k[16]
0x011 u85   OP_DMA_WAIT              k[17:16]
0x012 u55   OP_KERNEL_WAIT           n[17:16]
0x012 u85   OP_KERNEL_WAIT           n[16]
0x013 both  OP_PMU_MASK              enable[16]
0x100 both  SET_IFM_PAD_TOP          pad[22:16]
0x101 both  SET_IFM_PAD_LEFT         pad[22:16]
0x102 both  SET_IFM_PAD_RIGHT        pad[23:16]
0x103 both  SET_IFM_PAD_BOTTOM       pad[23:16]
0x104 both  SET_IFM_DEPTH_M1         depth_m1[31:16]
0x105 u55   SET_IFM_PRECISION        activation_type[16] activation_precision[19:18]
                                     activation_format[23:22] scale_mode[25:24] round_mode[31:30]
0x105 u85   SET_IFM_PRECISION        activation_type[16] activation_precision[19:18]
                                     activation_format[23:22] activation_storage[31:30]
0x107 both  SET_IFM_UPSCALE          mode[17:16]
0x108 u85   SET_IFM_BROADCAST        broadcast_mode[19:16]
0x109 both  SET_IFM_ZERO_POINT       zero_point[31:16]
0x10A both  SET_IFM_WIDTH0_M1        width_m1[31:16]
0x10B both  SET_IFM_HEIGHT0_M1       height_m1[31:16]
0x10C both  SET_IFM_HEIGHT1_M1       height_m1[31:16]
0x10D u55   SET_IFM_IB_END           ib_end[21:16]
0x10F both  SET_IFM_REGION           region[18:16]
0x111 both  SET_OFM_WIDTH_M1         width_m1[31:16]
0x112 both  SET_OFM_HEIGHT_M1        height_m1[31:16]
0x113 both  SET_OFM_DEPTH_M1         depth_m1[31:16]
0x114 u55   SET_OFM_PRECISION        activation_type[16] activation_precision[18:17]
                                     activation_format[23:22] scale_mode[24] round_mode[31:30]
0x114 u85   SET_OFM_PRECISION        activation_type[16] activation_precision[18:17]
                                     activation_format[23:22] scale_mode[24] activation_reverse[26:25]
                                     activation_transpose[29:27] activation_storage[31:30]
0x115 u55   SET_OFM_BLK_WIDTH_M1     width_m1[21:16]
0x115 u85   SET_OFM_BLK_WIDTH_M1     width_m1[22:16]
0x116 u55   SET_OFM_BLK_HEIGHT_M1    height_m1[20:16]
0x116 u85   SET_OFM_BLK_HEIGHT_M1    height_m1[22:16]
0x117 u55   SET_OFM_BLK_DEPTH_M1     depth_m1[22:16]
0x117 u85   SET_OFM_BLK_DEPTH_M1     depth_m1[25:16]
0x118 both  SET_OFM_ZERO_POINT       zero_point[31:16]
0x11A both  SET_OFM_WIDTH0_M1        width_m1[31:16]
0x11B both  SET_OFM_HEIGHT0_M1       height_m1[31:16]
0x11C both  SET_OFM_HEIGHT1_M1       height_m1[31:16]
0x11F both  SET_OFM_REGION           region[18:16]
0x120 both  SET_KERNEL_WIDTH_M1      width_m1[31:16]
0x121 both  SET_KERNEL_HEIGHT_M1     height_m1[31:16]
0x122 both  SET_KERNEL_STRIDE        stride_x_lsb[16] stride_y_lsb[17] weight_order[18] dilation_x[19]
                                     dilation_y[20] decomposition[21] stride_x_msb[22] stride_y_msb[25]
0x123 u55   SET_PARALLEL_MODE        parallel_mode[16]
0x124 u55   SET_ACC_FORMAT           acc_format[17:16]
0x124 u85   SET_ACC_FORMAT           acc_format[17:16] acc_input[21:20] acc_output[22] microblock[26:24]
0x125 u55   SET_ACTIVATION           activation_function[20:16] activation_clip_range[30:28]
0x125 u85   SET_ACTIVATION           activation_function[20:16] table[23:21] activation_clip_range[28]
0x126 both  SET_ACTIVATION_MIN       clip_boundary[31:16]
0x127 both  SET_ACTIVATION_MAX       clip_boundary[31:16]
0x128 both  SET_WEIGHT_REGION        region[18:16]
0x129 both  SET_SCALE_REGION         region[18:16]
0x12A u85   SET_RESIZE_X_SCALE_N_M1  resize_x_scale_n_m1[26:16]
0x12B u85   SET_RESIZE_Y_SCALE_N_M1  resize_y_scale_n_m1[26:16]
0x12C u85   SET_RESIZE_X_OFFSET      resize_x_offset[27:16]
0x12D u55   SET_AB_START             ab_start[21:16]
0x12D u85   SET_RESIZE_Y_OFFSET      resize_y_offset[27:16]
0x12E u85   SET_WEIGHT_FORMAT        weight_format[16] weight_sparsity[20]
0x12F u55   SET_BLOCKDEP             blockdep[17:16]
0x12F u85   SET_BLOCKDEP             blockdep[18:16]
0x130 u55   SET_DMA0_SRC_REGION      region[18:16] region_mode[24] stride_mode[26:25]
0x130 u85   SET_DMA0_SRC_REGION      region[18:16] region_mode[24] stride_mode[26:25] idx_mode[27]
0x131 u55   SET_DMA0_DST_REGION      region[18:16] region_mode[24] stride_mode[26:25]
0x131 u85   SET_DMA0_DST_REGION      region[18:16] region_mode[24] idx_mode[27]
0x132 both  SET_DMA0_SIZE0           size[31:16]
0x133 both  SET_DMA0_SIZE1           size[31:16]
0x134 u85   SET_DMA0_IDX_REGION      region[18:16]
0x180 u55   SET_IFM2_BROADCAST       broadcast_h[16] broadcast_w[17] broadcast_c[18] operand_order[22]
                                     broadcast_constant[23]
0x180 u85   SET_IFM2_BROADCAST       broadcast_mode[19:16]
0x181 u55   SET_IFM2_SCALAR          scalar[31:16]
0x185 u55   SET_IFM2_PRECISION       activation_type[16] activation_precision[19:18]
                                     activation_format[23:22]
0x185 u85   SET_IFM2_PRECISION       activation_type[16] activation_precision[19:18]
                                     activation_format[23:22] activation_storage[31:30]
0x189 both  SET_IFM2_ZERO_POINT      zero_point[31:16]
0x18A both  SET_IFM2_WIDTH0_M1       width_m1[31:16]
0x18B both  SET_IFM2_HEIGHT0_M1      height_m1[31:16]
0x18C both  SET_IFM2_HEIGHT1_M1      height_m1[31:16]
0x18D u55   SET_IFM2_IB_START        ib_start[21:16]
0x18F both  SET_IFM2_REGION          region[18:16]
"""

# Commands of two words.
TWO_WORDS = """
0x000 both  SET_IFM_BASE0            addr_hi[23:16] addr_lo[63:32]
0x001 both  SET_IFM_BASE1            addr_hi[23:16] addr_lo[63:32]
0x002 both  SET_IFM_BASE2            addr_hi[23:16] addr_lo[63:32]
0x003 both  SET_IFM_BASE3            addr_hi[23:16] addr_lo[63:32]
0x004 both  SET_IFM_STRIDE_X         addr_hi[23:16] addr_lo[63:32]
0x005 both  SET_IFM_STRIDE_Y         addr_hi[23:16] addr_lo[63:32]
0x006 both  SET_IFM_STRIDE_C         addr_hi[23:16] addr_lo[63:32]
0x010 both  SET_OFM_BASE0            addr_hi[23:16] addr_lo[63:32]
0x011 both  SET_OFM_BASE1            addr_hi[23:16] addr_lo[63:32]
0x012 both  SET_OFM_BASE2            addr_hi[23:16] addr_lo[63:32]
0x013 both  SET_OFM_BASE3            addr_hi[23:16] addr_lo[63:32]
0x014 both  SET_OFM_STRIDE_X         addr_hi[23:16] addr_lo[63:32]
0x015 both  SET_OFM_STRIDE_Y         addr_hi[23:16] addr_lo[63:32]
0x016 both  SET_OFM_STRIDE_C         addr_hi[23:16] addr_lo[63:32]
0x020 both  SET_WEIGHT_BASE          addr_hi[23:16] addr_lo[63:32]
0x021 both  SET_WEIGHT_LENGTH        length[63:32]
0x022 both  SET_SCALE_BASE           addr_hi[23:16] addr_lo[63:32]
0x023 both  SET_SCALE_LENGTH         length[51:32]
0x024 u55   SET_OFM_SCALE            shift[21:16] scale[63:32]
0x024 u85   SET_OFM_SCALE            shift[21:16] dbl_rnd[26:22] round_mode[31:29] scale[62:32]
0x025 u55   SET_OPA_SCALE            shift[21:16] scale[63:32]
0x025 u85   SET_IFM_SCALE            shift[21:16] dbl_rnd[26:22] round_mode[29] scale[62:32]
0x026 u55   SET_OPB_SCALE            scale[47:32]
0x026 u85   SET_IFM2_SCALE           shift[21:16] dbl_rnd[26:22] round_mode[29] scale[62:32]
0x027 u85   SET_OP_SCALAR            scalar[63:32]
0x030 both  SET_DMA0_SRC             addr_hi[23:16] addr_lo[63:32]
0x031 both  SET_DMA0_DST             addr_hi[23:16] addr_lo[63:32]
0x032 both  SET_DMA0_LEN             addr_hi[23:16] addr_lo[63:32]
0x033 u55   SET_DMA0_SKIP0           addr_hi[23:16] addr_lo[63:32]
0x033 u85   SET_DMA0_SRC_STRIDE0     addr_hi[23:16] addr_lo[63:32]
0x034 u55   SET_DMA0_SKIP1           addr_hi[23:16] addr_lo[63:32]
0x034 u85   SET_DMA0_SRC_STRIDE1     addr_hi[23:16] addr_lo[63:32]
0x035 u85   SET_DMA0_DST_STRIDE0     addr_hi[23:16] addr_lo[63:32]
0x036 u85   SET_DMA0_DST_STRIDE1     addr_hi[23:16] addr_lo[63:32]
0x037 u85   SET_DMA0_IDX             addr_hi[23:16] addr_lo[63:32]
0x038 u85   SET_DMA0_IDX_MAX         idx_max[62:32]
0x039 u85   SET_DMA0_IDX_SKIP1       addr_hi[23:16] addr_lo[63:32]
0x080 both  SET_IFM2_BASE0           addr_hi[23:16] addr_lo[63:32]
0x081 both  SET_IFM2_BASE1           addr_hi[23:16] addr_lo[63:32]
0x082 both  SET_IFM2_BASE2           addr_hi[23:16] addr_lo[63:32]
0x083 both  SET_IFM2_BASE3           addr_hi[23:16] addr_lo[63:32]
0x084 both  SET_IFM2_STRIDE_X        addr_hi[23:16] addr_lo[63:32]
0x085 both  SET_IFM2_STRIDE_Y        addr_hi[23:16] addr_lo[63:32]
0x086 both  SET_IFM2_STRIDE_C        addr_hi[23:16] addr_lo[63:32]
0x090 both  SET_WEIGHT1_BASE         addr_hi[23:16] addr_lo[63:32]
0x091 both  SET_WEIGHT1_LENGTH       length[63:32]
0x092 u55   SET_SCALE1_BASE          addr_hi[23:16] addr_lo[63:32]
0x092 u85   SET_WEIGHT2_BASE         addr_hi[23:16] addr_lo[63:32]
0x093 u55   SET_SCALE1_LENGTH        length[51:32]
0x093 u85   SET_WEIGHT2_LENGTH       length[63:32]
0x094 u85   SET_WEIGHT3_BASE         addr_hi[23:16] addr_lo[63:32]
0x095 u85   SET_WEIGHT3_LENGTH       length[63:32]
0x096 u85   SET_RESIZE_X             one_step_int[19:16] blk_step_int[30:20] one_step_mod[42:32]
                                     blk_step_mod[58:48]
0x097 u85   SET_RESIZE_Y             one_step_int[19:16] blk_step_int[30:20] one_step_mod[42:32]
                                     blk_step_mod[58:48]
0x100 u85   OP_BRANCH                branch_cond[16] branch_target[63:32]
"""


# The NPU's memory-mapped registers.
#
# One line per register: byte offset, families (``u55`` stands for Ethos-U55 and Ethos-U65), name, access, and the
# fields with their bits. ``NAME*COUNT+STEP`` is a row of registers NAME0, NAME1, … that lie STEP bytes apart. Bits
# outside of all fields read as 0. Offsets, names and bits are those of the register headers in ethos-u-vela 5.1.0
# and of Arm's ethosu55_interface.h (both Apache-2.0); the words _HI hold address bits 39:32.

REGISTERS = """
0x0000 both ID           ro version_status[3:0] version_minor[7:4] version_major[11:8] product_major[15:12]
                            arch_patch_rev[19:16] arch_minor_rev[27:20] arch_major_rev[31:28]
0x0004 u55  STATUS       ro state[0] irq_raised[1] bus_status[2] reset_status[3] cmd_parse_error[4]
                            cmd_end_reached[5] pmu_irq_raised[6] wd_fault[7] ecc_fault[8]
                            faulting_interface[11] faulting_channel[15:12] irq_history_mask[31:16]
0x0004 u85  STATUS       ro state[0] irq_raised[1] bus_status[2] reset_status[3] cmd_parse_error[4]
                            cmd_end_reached[5] pmu_irq_raised[6] ecc_fault[8] branch_fault[9]
                            faulting_interface[11] faulting_channel[15:12] irq_history_mask[31:16]
0x0008 both CMD          rw transition_to_running_state[0] clear_irq[1] clock_q_enable[2] power_q_enable[3]
                            stop_request[4] clear_irq_history[31:16]
0x000C both RESET        rw pending_CPL[0] pending_CSL[1]
0x0010 both QBASE        rw offset_LO[31:0]
0x0014 both QBASE_HI     rw offset_HI[7:0]
0x0018 both QREAD        ro QREAD[31:0]
0x001C both QCONFIG      rw cmd_region0[1:0]
0x0020 both QSIZE        rw QSIZE[31:0]
0x0024 both PROT         ro active_CPL[0] active_CSL[1]
0x0028 u55  CONFIG       ro macs_per_cc[3:0] cmd_stream_version[7:4] shram_size[15:8] custom_dma[27]
                            product[31:28]
0x0028 u85  CONFIG       ro macs_per_cc[3:0] cmd_stream_version[7:4] num_axi_sram[9:8] num_axi_ext[10]
                            num_wd[13:12] custom_dma[27] product[31:28]
0x002C u55  LOCK         rw LOCK[31:0]
0x0030 u85  COND_STATUS  ro result_flag[0]
0x0038 u85  POWER_CTRL   rw mac_step_cycles[5:0]
0x003C both REGIONCFG    rw region0[1:0] region1[3:2] region2[5:4] region3[7:6] region4[9:8] region5[11:10]
                            region6[13:12] region7[15:14]
0x0040 u55  AXI_LIMIT*4+4 rw max_beats[1:0] memtype[7:4] max_outstanding_read_m1[21:16]
                            max_outstanding_write_m1[28:24]
0x0040 u85  MEM_ATTR*4+4 rw mem_domain[1:0] axi_port[2] memtype[7:4]
0x0050 u85  AXI_SRAM     rw max_outstanding_read_m1[5:0] max_outstanding_write_m1[12:8] max_beats[17:16]
0x0054 u85  AXI_EXT      rw max_outstanding_read_m1[5:0] max_outstanding_write_m1[12:8] max_beats[17:16]
0x0060 u85  CFG_SRAM_CAP ro max_outstanding_read_m1[5:0] max_outstanding_write_m1[12:8] max_beats[17:16]
0x0064 u85  CFG_EXT_CAP  ro max_outstanding_read_m1[5:0] max_outstanding_write_m1[12:8] max_beats[17:16]
0x0068 u85  CFG_SRAM_HASH*2+8 ro hash_LO[31:6]
0x006C u85  CFG_SRAM_HASH_HI*2+8 ro hash_HI[7:0]
0x0078 u85  CFG_EXT_HASH0 ro hash_LO[31:6]
0x007C u85  CFG_EXT_HASH_HI0 ro hash_HI[7:0]
0x0080 both BASEP*8+8    rw offset_LO[31:0]
0x0084 both BASEP_HI*8+8 rw offset_HI[7:0]
0x0140 both CLKFORCE     rw top_level_clk[0] cc_clk[1] dma_clk[2] mac_clk[3] ao_clk[4] wd_clk[5]
0x0180 u55  PMCR         rw cnt_en[0] event_cnt_rst[1] cycle_cnt_rst[2] mask_en[3] num_event_cnt[15:11]
0x0184 u55  PMCNTENSET   rw event_cnt[3:0] cycle_cnt[31]
0x0188 u55  PMCNTENCLR   rw event_cnt[3:0] cycle_cnt[31]
0x018C u55  PMOVSSET     rw event_cnt_ovf[3:0] cycle_cnt_ovf[31]
0x0190 u55  PMOVSCLR     rw event_cnt_ovf[3:0] cycle_cnt_ovf[31]
0x0194 u55  PMINTSET     rw event_cnt_int[3:0] cycle_cnt_int[31]
0x0198 u55  PMINTCLR     rw event_cnt_int[3:0] cycle_cnt_int[31]
0x01A0 u55  PMCCNTR      rw cycle_cnt_lo[31:0]
0x01A4 u55  PMCCNTR_HI   rw cycle_cnt_hi[15:0]
0x01A8 u55  PMCCNTR_CFG  rw cycle_cnt_cfg_start[9:0] cycle_cnt_cfg_stop[25:16]
0x01AC u55  PMCAXI_CHAN  rw ch_sel[3:0] axi_cnt_sel[9:8] bw_ch_sel_en[10]
0x0300 u55  PMEVCNTR*4+4 rw count[31:0]
0x0380 u55  PMEVTYPER*4+4 rw ev_type[9:0]
0x1180 u85  PMCR         rw cnt_en[0] event_cnt_rst[1] cycle_cnt_rst[2] mask_en[3] num_event_cnt[15:11]
0x1184 u85  PMCNTENSET   rw event_cnt[7:0] cycle_cnt[31]
0x1188 u85  PMCNTENCLR   rw event_cnt[7:0] cycle_cnt[31]
0x118C u85  PMOVSSET     rw event_cnt_ovf[7:0] cycle_cnt_ovf[31]
0x1190 u85  PMOVSCLR     rw event_cnt_ovf[7:0] cycle_cnt_ovf[31]
0x1194 u85  PMINTSET     rw event_cnt_int[7:0] cycle_cnt_int[31]
0x1198 u85  PMINTCLR     rw event_cnt_int[7:0] cycle_cnt_int[31]
0x11A0 u85  PMCCNTR      rw cycle_cnt_lo[31:0]
0x11A4 u85  PMCCNTR_HI   rw cycle_cnt_hi[15:0]
0x11A8 u85  PMCCNTR_CFG  rw cycle_cnt_cfg_start[9:0] s[15:12] cycle_cnt_cfg_stop[25:16] e[31:28]
0x11AC u85  PMCAXI_CHAN  rw ch_sel[3:0] axi_sel[8] bw_ch_sel_en[10]
0x11B0 u85  PMCLUT       rw pmc_lut_en_0[0] pmc_lut_0[31:16]
0x1300 u85  PMEVCNTR*8+4 rw count[31:0]
0x1380 u85  PMEVTYPER*8+4 rw ev_type[9:0] d[15:12]
0x0FC0 both REVISION     ro value[31:0]
0x0FD0 both PID4         ro PID4[31:0]
0x0FE0 both PID0         ro PID0[31:0]
0x0FE4 both PID1         ro PID1[31:0]
0x0FE8 both PID2         ro PID2[31:0]
0x0FF0 both CID0         ro CID0[31:0]
0x0FF4 both CID1         ro CID1[31:0]
0x0FF8 both CID2         ro CID2[31:0]
0x0FFC both CID3         ro CID3[31:0]
"""

# Values that never change: the identification of the part. REVISION and Ethos-U85's CFG_* registers, which tell how
# a chip was configured, are not public and read as 0.
IDENTIFICATION = {
    "PID0": {"u55": 0x81, "u85": 0x82},
    "PID1": {"u55": 0xB5, "u85": 0xB5},
    "PID2": {"u55": 0x0B, "u85": 0x0B},
    "PID4": {"u55": 0x04, "u85": 0x04},
    "CID0": {"u55": 0x0D, "u85": 0x0D},
    "CID1": {"u55": 0xF0, "u85": 0xF0},
    "CID2": {"u55": 0x05, "u85": 0x05},
    "CID3": {"u55": 0xB1, "u85": 0xB1},
}


@dataclass(frozen=True)
class Field:
    """Bits `high`:`low` of a register, or of a command's words taken together."""

    name: str
    high: int
    low: int

    @functools.cached_property
    def mask(self) -> int:
        """The field's bits, in place."""
        return (1 << (self.high + 1)) - (1 << self.low)

    def value_in(self, bits: int) -> int:
        """The field's value in `bits`, unsigned."""
        return (bits & self.mask) >> self.low


@dataclass(frozen=True)
class CommandType:
    """One row of the command table. Operations act; the others set the register that `register` names."""

    opcode: int
    words: int
    name: str
    fields: tuple[Field, ...]

    @property
    def is_operation(self) -> bool:
        """Whether the command starts something, rather than setting a register."""
        return self.name.startswith("OP_")

    @functools.cached_property
    def register(self) -> str:
        """The register that a SET command writes, such as ``IFM_PRECISION``."""
        return self.name.removeprefix("SET_")

    @functools.cached_property
    def field_of(self) -> dict[str, Field]:
        """Name → field."""
        return {field.name: field for field in self.fields}


@dataclass(frozen=True)
class Register:
    """One memory-mapped register. Bits outside of `mask` read as 0."""

    offset: int
    name: str
    writable: bool
    fields: tuple[Field, ...]

    @property
    def mask(self) -> int:
        """All bits that belong to a field."""
        return sum(field.mask for field in self.fields)


@functools.cache
def command_types(generation: Generation) -> dict[tuple[int, int], CommandType]:
    """(words, opcode) → command type, for one generation."""
    found: dict[tuple[int, int], CommandType] = {}
    for words, text in ((1, ONE_WORD), (2, TWO_WORDS)):
        for opcode, name, rest in _rows(text, generation):
            found[words, opcode] = CommandType(opcode, words, name, tuple(map(_field, rest)))
    return found


@functools.cache
def registers(generation: Generation) -> dict[int, Register]:
    """Offset → memory-mapped register, for one generation."""
    found: dict[int, Register] = {}
    for offset, name, (access, *rest) in _rows(REGISTERS, generation):
        fields = tuple(map(_field, rest))
        for place, single in _expanded(offset, name):
            found[place] = Register(place, single, access == "rw", fields)
    return found


def _expanded(offset: int, name: str) -> Iterator[tuple[int, str]]:
    repeated = re.fullmatch(r"(\w+)\*(\d+)\+(\d+)", name)
    if repeated is None:
        yield offset, name
        return
    stem, count, step = repeated.groups()
    for index in range(int(count)):
        yield offset + index * int(step), f"{stem}{index}"


def _rows(text: str, generation: Generation) -> Iterator[tuple[int, str, list[str]]]:
    """(number, name, the other words) of the generation's rows; a line that starts with a space goes on."""
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        number, families, name, *rest = line.split()
        if families in ("both", generation):
            yield int(number, 16), name, rest


def _field(text: str) -> Field:
    match = re.fullmatch(r"(\w+)\[(\d+)(?::(\d+))?\]", text)
    if match is None:
        raise ValueError(f"not a field: {text}")
    name, high, low = match.groups()
    return Field(name, int(high), int(low if low is not None else high))
