/*
 * Arm Ethos-U neural processing unit, computed by another process
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 * QEMU interface:
 *  + sysbus MMIO region 0: the register window
 *  + sysbus IRQ 0: the interrupt line, level sensitive
 *  + QOM property "chardev": the connection to the process that computes the
 *    NPU. Without it all registers read as zero and ignore writes.
 *  + QOM property "size": bytes of the register window, at most 8 KiB
 */

#ifndef HW_MISC_ETHOS_U_H
#define HW_MISC_ETHOS_U_H

#include "hw/sysbus.h"
#include "chardev/char-fe.h"
#include "qom/object.h"

#define TYPE_ETHOS_U "ethos-u"
OBJECT_DECLARE_SIMPLE_TYPE(EthosUState, ETHOS_U)

#define ETHOS_U_MAX_SIZE 0x2000

struct EthosUState {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    qemu_irq irq;
    CharBackend chr;
    uint32_t size;
};

#endif
