/*
 * The facts of Arm's Corstone-310 and Corstone-320 boards
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 * Sources: the devicetrees of Zephyr's mps3_corstone310_an555,
 * mps3_corstone310_fvp and mps4_corstone320_fvp, Trusted Firmware-M's targets
 * of the same boards. Bit 28 of an address chooses the Secure alias. The one
 * exception is Corstone-320's code SRAM, in whose place is the boot ROM.
 *
 * Protection controllers are there as registers only: what is written to them
 * protects nothing. Sources: Trusted Firmware-M (bases), hw/misc/tz-mpc.c
 * (registers).
 *
 * Corstone-310's FVP and FPGA image start in the code SRAM, Corstone-320's
 * FVP in the boot ROM. Its loader fills that, and firmware may write to it:
 * Arm's own puts its interrupt handlers into the vectors there.
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "hw/arm/corstone.h"

/*
 * A memory protection controller (mpc) has CTRL at 0, in BLK_MAX at 0x10 the
 * number of its last word of blocks, 32 in each, and in BLK_CFG at 0x14 n for
 * blocks of 2 to the power of 5 + n bytes.
 */
const CorstoneRegisterFile corstone_common_register_files[] = {
    { "cpu0-secctrl", 0x00011000 },
    { "sacfg", 0x00080000 },
    { "internal-sram0-mpc", 0x00083000,
      { { 0x00, 0x100 }, { 0x10, 3, true }, { 0x14, 9, true } } },
    { "internal-sram1-mpc", 0x00084000,
      { { 0x00, 0x100 }, { 0x10, 3, true }, { 0x14, 9, true } } },
    { "code-sram-mpc", 0x07000000,
      { { 0x00, 0x100 }, { 0x10, 3, true }, { 0x14, 9, true } } },
    { "qspi-mpc", 0x07001000,
      { { 0x00, 0x100 }, { 0x10, 0, true }, { 0x14, 13, true } } },
    { "ddr-mpc", 0x07002000,
      { { 0x00, 0x100 }, { 0x10, 63, true }, { 0x14, 15, true } } },
    { "sysctrl", 0x08021000 },
    { "npu0-ppu", 0x0802a000 },
    { }
};

static const CorstoneMemory corstone_310_memories[] = {
    { "itcm", 0x00000000, 0x10000000, 32 * KiB },
    { "code-sram", 0x01000000, 0x11000000, 2 * MiB, "code-sram" },
    { "dtcm", 0x20000000, 0x30000000, 32 * KiB },
    { "internal-sram", 0x21000000, 0x31000000, 4 * MiB, "internal-sram" },
    { "qspi", 0x28000000, 0x38000000, 8 * MiB, "qspi" },
    { }
};

static const CorstoneBoard corstone_310 = {
    .description = "Arm Corstone-310 (MPS3, AN555): Cortex-M85, Ethos-U",
    .memories = corstone_310_memories,
    .reset_vectors = 0x11000000,
    .core_hz = 25 * 1000 * 1000,
    .scc_id = 0x41055550,
    .npu = 0x00004000,
    .scc = 0x09300000,
    .fpgaio = 0x09302000,
    .uarts = 0x09303000,
    .npu_irq = 16,
};

static const CorstoneRegisterFile corstone_320_register_files[] = {
    /* Nothing is shown; VERSION has the value of Arm's HDLCD TRM. */
    { "hdlcd", 0x00310000, { { 0x00, 0x1cdc0000, true } } },
    { }
};

static const CorstoneMemory corstone_320_memories[] = {
    { "itcm", 0x00000000, 0x10000000, 32 * KiB },
    { "code-sram", 0x01000000, 0x12000000, 2 * MiB, "code-sram" },
    { "boot-rom", 0x11000000, 0x11000000, 128 * KiB },
    { "dtcm", 0x20000000, 0x30000000, 32 * KiB },
    { "internal-sram", 0x21000000, 0x31000000, 4 * MiB, "internal-sram" },
    { "qspi", 0x28000000, 0x38000000, 8 * MiB, "qspi" },
    { }
};

static const CorstoneBoard corstone_320 = {
    .description = "Arm Corstone-320 (MPS4): Cortex-M85, Ethos-U85",
    .memories = corstone_320_memories,
    .register_files = corstone_320_register_files,
    .reset_vectors = 0x11000000,
    .core_hz = 25 * 1000 * 1000,
    .scc_id = 0x41000000, /* Arm; the board's number is not published */
    .npu = 0x00004000,
    .scc = 0x08200000,
    .fpgaio = 0x08202000,
    .uarts = 0x08203000,
    .npu_irq = 16,
};

static void corstone_board_class_init(ObjectClass *oc, void *data)
{
    const CorstoneBoard *board = data;

    CORSTONE_MACHINE_CLASS(oc)->board = board;
    MACHINE_CLASS(oc)->desc = board->description;
}

static const TypeInfo corstone_board_infos[] = {
    {
        .name = MACHINE_TYPE_NAME("corstone-310"),
        .parent = TYPE_CORSTONE_MACHINE,
        .class_init = corstone_board_class_init,
        .class_data = (void *)&corstone_310,
    }, {
        .name = MACHINE_TYPE_NAME("corstone-320"),
        .parent = TYPE_CORSTONE_MACHINE,
        .class_init = corstone_board_class_init,
        .class_data = (void *)&corstone_320,
    },
};

DEFINE_TYPES(corstone_board_infos)
