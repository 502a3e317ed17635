/*
 * Registers that keep what is written to them, and do nothing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 * QEMU interface:
 *  + sysbus MMIO region 0: 4 KiB of 32-bit registers
 *  + register_file_reset_value(): what a register has after reset, zero if
 *    nothing else is said; a constant one ignores writes
 *
 * It stands in for peripherals that firmware sets up, or looks for, and then
 * relies on in no other way.
 */

#ifndef HW_MISC_REGISTER_FILE_H
#define HW_MISC_REGISTER_FILE_H

#include "qemu/bitmap.h"
#include "hw/sysbus.h"
#include "qom/object.h"

#define TYPE_REGISTER_FILE "register-file"
OBJECT_DECLARE_SIMPLE_TYPE(RegisterFileState, REGISTER_FILE)

#define REGISTER_FILE_WORDS 1024

struct RegisterFileState {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    uint32_t words[REGISTER_FILE_WORDS];
    uint32_t reset_words[REGISTER_FILE_WORDS];
    DECLARE_BITMAP(constant, REGISTER_FILE_WORDS);
};

void register_file_reset_value(RegisterFileState *s, hwaddr offset,
                               uint32_t value, bool constant);

#endif
