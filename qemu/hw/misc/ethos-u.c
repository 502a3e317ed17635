/*
 * Arm Ethos-U neural processing unit, computed by another process
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 * The device has no registers of its own. Each access of the guest becomes a
 * request on the chardev, and the processor waits for the answer: the NPU is
 * in the other process, and so is the time that a job takes. The frames have
 * a fixed size and are little endian:
 *
 *   request  u8 operation  u8 size  u16 zero  u32 offset  u32 value
 *   answer   u8 status     u8 irq   u16 zero  u32 value
 *
 * An operation is 1 for a read and 2 for a write; a size is 1, 2 or 4 bytes,
 * and the offset a multiple of it. A read's request has the value 0, and so
 * has a write's answer. The level of the interrupt line comes with every
 * answer, as it can change with an access only. Status 0 means done. Status 1
 * means that the access cannot be carried out: the machine stops with the
 * processor at the instruction in question, for a debugger to look at.
 *
 * There is no way to go on without the other process: when it closes the
 * connection, or answers what is not a valid frame, QEMU ends.
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "hw/irq.h"
#include "hw/misc/ethos-u.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "migration/vmstate.h"
#include "sysemu/runstate.h"

enum {
    OPERATION_READ = 1,
    OPERATION_WRITE = 2,
};

enum {
    STATUS_DONE = 0,
    STATUS_STOP = 1,
};

typedef struct QEMU_PACKED EthosURequest {
    uint8_t operation;
    uint8_t size;
    uint16_t zero;
    uint32_t offset;
    uint32_t value;
} EthosURequest;

typedef struct QEMU_PACKED EthosUAnswer {
    uint8_t status;
    uint8_t irq;
    uint16_t zero;
    uint32_t value;
} EthosUAnswer;

QEMU_BUILD_BUG_ON(sizeof(EthosURequest) != 12);
QEMU_BUILD_BUG_ON(sizeof(EthosUAnswer) != 8);

static G_NORETURN void ethos_u_peer_gone(void)
{
    error_report("ethos-u: the process that computes the NPU has closed its"
                 " connection");
    exit(1);
}

/* The machine stands still, and the instruction has not been executed. */
static G_NORETURN void ethos_u_stop_at_access(void)
{
    vm_stop(RUN_STATE_DEBUG);
    cpu_loop_exit_restore(current_cpu, current_cpu->mem_io_pc);
}

static uint32_t ethos_u_transfer(EthosUState *s, uint8_t operation,
                                 hwaddr offset, uint32_t value, unsigned size)
{
    EthosURequest request = {
        .operation = operation,
        .size = size,
        .offset = cpu_to_le32(offset),
        .value = cpu_to_le32(value),
    };
    EthosUAnswer answer;

    if (!qemu_chr_fe_backend_connected(&s->chr)) {
        return 0;
    }
    if (qemu_chr_fe_write_all(&s->chr, (uint8_t *)&request, sizeof(request))
        != sizeof(request) ||
        qemu_chr_fe_read_all(&s->chr, (uint8_t *)&answer, sizeof(answer))
        != sizeof(answer)) {
        ethos_u_peer_gone();
    }
    value = le32_to_cpu(answer.value);
    if (answer.status > STATUS_STOP || answer.irq > 1 || answer.zero ||
        (operation == OPERATION_WRITE && value) ||
        (uint64_t)value >> (8 * size)) {
        error_report("ethos-u: not a valid answer for the register at offset"
                     " 0x%" HWADDR_PRIx, offset);
        exit(1);
    }
    if (answer.status == STATUS_STOP) {
        ethos_u_stop_at_access();
    }
    qemu_set_irq(s->irq, answer.irq);
    return value;
}

static uint64_t ethos_u_read(void *opaque, hwaddr offset, unsigned size)
{
    return ethos_u_transfer(opaque, OPERATION_READ, offset, 0, size);
}

static void ethos_u_write(void *opaque, hwaddr offset, uint64_t value,
                          unsigned size)
{
    ethos_u_transfer(opaque, OPERATION_WRITE, offset, value, size);
}

static const MemoryRegionOps ethos_u_ops = {
    .read = ethos_u_read,
    .write = ethos_u_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .impl.min_access_size = 1,
    .impl.max_access_size = 4,
    .valid.min_access_size = 1,
    .valid.max_access_size = 4,
};

/* Seen while the guest runs, too, and not at its next access only. */
static void ethos_u_event(void *opaque, QEMUChrEvent event)
{
    if (event == CHR_EVENT_CLOSED) {
        ethos_u_peer_gone();
    }
}

static void ethos_u_realize(DeviceState *dev, Error **errp)
{
    EthosUState *s = ETHOS_U(dev);

    if (!s->size || s->size > ETHOS_U_MAX_SIZE || s->size % 4) {
        error_setg(errp, "ethos-u: a register window of 0x%x bytes is not"
                   " possible, at most 0x%x are", s->size, ETHOS_U_MAX_SIZE);
        return;
    }
    memory_region_init_io(&s->iomem, OBJECT(s), &ethos_u_ops, s, TYPE_ETHOS_U,
                          s->size);
    sysbus_init_mmio(SYS_BUS_DEVICE(s), &s->iomem);
    if (qemu_chr_fe_backend_connected(&s->chr)) {
        qemu_chr_fe_set_handlers(&s->chr, NULL, NULL, ethos_u_event, NULL, s,
                                 NULL, true);
    }
}

static void ethos_u_init(Object *obj)
{
    EthosUState *s = ETHOS_U(obj);

    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->irq);
}

static const VMStateDescription ethos_u_vmstate = {
    .name = TYPE_ETHOS_U,
    .unmigratable = 1,
};

static Property ethos_u_properties[] = {
    DEFINE_PROP_CHR("chardev", EthosUState, chr),
    DEFINE_PROP_UINT32("size", EthosUState, size, ETHOS_U_MAX_SIZE),
    DEFINE_PROP_END_OF_LIST(),
};

static void ethos_u_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->desc = "Arm Ethos-U, computed by another process";
    dc->realize = ethos_u_realize;
    dc->vmsd = &ethos_u_vmstate;
    device_class_set_props(dc, ethos_u_properties);
}

static const TypeInfo ethos_u_info = {
    .name = TYPE_ETHOS_U,
    .parent = TYPE_SYS_BUS_DEVICE,
    .instance_size = sizeof(EthosUState),
    .instance_init = ethos_u_init,
    .class_init = ethos_u_class_init,
};

static void ethos_u_register_types(void)
{
    type_register_static(&ethos_u_info);
}

type_init(ethos_u_register_types)
