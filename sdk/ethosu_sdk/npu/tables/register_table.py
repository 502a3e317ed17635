"""The NPU's memory-mapped registers, as data.

One line per register: byte offset, families (``u55`` stands for Ethos-U55 and Ethos-U65), name, access, and the
fields with their bits. ``NAME*COUNT+STEP`` is a row of registers NAME0, NAME1, … that lie STEP bytes apart. Bits
outside of all fields read as 0. Offsets, names and bits are those of the register headers in ethos-u-vela 5.1.0
and of Arm's ethosu55_interface.h (both Apache-2.0); the words _HI hold address bits 39:32.
"""

from __future__ import annotations

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
