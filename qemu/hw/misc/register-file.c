/*
 * Registers that keep what is written to them, and do nothing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/misc/register-file.h"
#include "migration/vmstate.h"

void register_file_reset_value(RegisterFileState *s, hwaddr offset,
                               uint32_t value, bool constant)
{
    unsigned number = offset / 4;

    assert(offset % 4 == 0 && number < REGISTER_FILE_WORDS);
    s->reset_words[number] = value;
    if (constant) {
        set_bit(number, s->constant);
    }
}

static uint64_t register_file_read(void *opaque, hwaddr offset, unsigned size)
{
    RegisterFileState *s = opaque;

    return s->words[offset / 4];
}

static void register_file_write(void *opaque, hwaddr offset, uint64_t value,
                                unsigned size)
{
    RegisterFileState *s = opaque;

    if (!test_bit(offset / 4, s->constant)) {
        s->words[offset / 4] = value;
    }
}

static const MemoryRegionOps register_file_ops = {
    .read = register_file_read,
    .write = register_file_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
    .valid.min_access_size = 1,
    .valid.max_access_size = 4,
};

static void register_file_reset(DeviceState *dev)
{
    RegisterFileState *s = REGISTER_FILE(dev);

    memcpy(s->words, s->reset_words, sizeof(s->words));
}

static void register_file_init(Object *obj)
{
    RegisterFileState *s = REGISTER_FILE(obj);

    memory_region_init_io(&s->iomem, obj, &register_file_ops, s,
                          TYPE_REGISTER_FILE, 4 * REGISTER_FILE_WORDS);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->iomem);
}

static const VMStateDescription register_file_vmstate = {
    .name = TYPE_REGISTER_FILE,
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (VMStateField[]) {
        VMSTATE_UINT32_ARRAY(words, RegisterFileState, REGISTER_FILE_WORDS),
        VMSTATE_END_OF_LIST()
    }
};

static void register_file_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->desc = "Registers that keep what is written to them";
    dc->reset = register_file_reset;
    dc->vmsd = &register_file_vmstate;
}

static const TypeInfo register_file_info = {
    .name = TYPE_REGISTER_FILE,
    .parent = TYPE_SYS_BUS_DEVICE,
    .instance_size = sizeof(RegisterFileState),
    .instance_init = register_file_init,
    .class_init = register_file_class_init,
};

static void register_file_register_types(void)
{
    type_register_static(&register_file_info);
}

type_init(register_file_register_types)
