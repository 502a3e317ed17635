/*
 * Arm Corstone-310 and Corstone-320 with a Cortex-M85 and an Ethos-U
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 * What all boards share: corstone-boards.c has the facts of each. Modelled
 * are the processor, the memories, UARTs, system counter and timers, SCC,
 * FPGAIO and the NPU. Protection controllers and display keep what is written
 * to them, and all other peripherals read as zero: from reset on everything is
 * Secure, and firmware that stays so does not miss them.
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "cpu.h"
#include "exec/address-spaces.h"
#include "hw/arm/boot.h"
#include "hw/arm/corstone.h"
#include "hw/clock.h"
#include "hw/misc/unimp.h"
#include "hw/qdev-clock.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "sysemu/hostmem.h"
#include "sysemu/sysemu.h"

#define PERIPHERALS_BASE 0x40000000
#define PERIPHERALS_SIZE 0x10000000
#define SECURE_PERIPHERALS_BASE 0x50000000
#define DDR_BASE 0x60000000
#define DDR_SIZE (2 * GiB)

#define SYSTIMERS 0x08000000
#define SYSCOUNTER_STATUS 0x08101000
#define SYSCOUNTER_CONTROL 0x58100000 /* in the Secure alias only */

#define NUM_IRQ 480
#define UART_OVERFLOW_IRQ 48
#define PERIPHERALS_HZ 25000000
#define REFERENCE_HZ 1000000 /* SysTick's other clock */

#define TYPE_CORTEX_M85 ARM_CPU_TYPE_NAME("cortex-m85")
#define CORTEX_M85_R1P0 0x411fd230

/* Receive, transmit, combined. */
static const int uart_irqs[CORSTONE_NUM_UARTS][3] = {
    { 33, 34, 43 }, { 35, 36, 44 }, { 37, 38, 45 },
    { 39, 40, 46 }, { 41, 42, 47 }, { 125, 126, 127 },
};

static const int timer_irqs[CORSTONE_NUM_TIMERS] = { 3, 4, 5, 27 };

/* The object called id, of exactly the size that the memory has. */
static MemoryRegion *backend_memory(const char *id, const CorstoneMemory *info)
{
    bool ambiguous;
    Object *object = object_resolve_path_type(id, TYPE_MEMORY_BACKEND,
                                              &ambiguous);
    MemoryRegion *memory;

    if (!object) {
        error_report("%s: there is no memory backend '%s'", info->option, id);
        exit(1);
    }
    if (host_memory_backend_is_mapped(MEMORY_BACKEND(object))) {
        error_report("%s: '%s' is in use already", info->option, id);
        exit(1);
    }
    memory = host_memory_backend_get_memory(MEMORY_BACKEND(object));
    if (memory_region_size(memory) != info->size) {
        error_report("%s: '%s' must have %" PRIu64 " bytes", info->option, id,
                     info->size);
        exit(1);
    }
    host_memory_backend_set_mapped(MEMORY_BACKEND(object), true);
    vmstate_register_ram_global(memory);
    return memory;
}

static void create_memories(CorstoneMachineState *s, const CorstoneBoard *board)
{
    MemoryRegion *system = get_system_memory();
    const CorstoneMemory *info = board->memories;

    for (int i = 0; info[i].name; i++) {
        MemoryRegion *memory = &s->memory[i];

        assert(i < CORSTONE_MAX_MEMORIES);
        if (s->backend[i]) {
            memory = backend_memory(s->backend[i], &info[i]);
        } else {
            memory_region_init_ram(memory, NULL, info[i].name, info[i].size,
                                   &error_fatal);
        }
        memory_region_add_subregion(system, info[i].base, memory);
        if (info[i].secure_alias != info[i].base) {
            memory_region_init_alias(&s->secure_memory[i], OBJECT(s),
                                     info[i].name, memory, 0, info[i].size);
            memory_region_add_subregion(system, info[i].secure_alias,
                                        &s->secure_memory[i]);
        }
    }
    memory_region_add_subregion(system, DDR_BASE, MACHINE(s)->ram);
}

static qemu_irq nvic_input(CorstoneMachineState *s, int number)
{
    return qdev_get_gpio_in(DEVICE(&s->armv7m), number);
}

/* A realized device's registers, at offset of the peripherals. */
static void map_peripheral(CorstoneMachineState *s, void *device,
                           hwaddr offset)
{
    memory_region_add_subregion(&s->peripherals, offset,
                                sysbus_mmio_get_region(SYS_BUS_DEVICE(device),
                                                       0));
}

static void create_processor(CorstoneMachineState *s,
                             const CorstoneBoard *board)
{
    DeviceState *dev;

    object_initialize_child(OBJECT(s), "armv7m", &s->armv7m, TYPE_ARMV7M);
    dev = DEVICE(&s->armv7m);
    qdev_prop_set_uint32(dev, "num-irq", NUM_IRQ);
    qdev_prop_set_string(dev, "cpu-type", MACHINE(s)->cpu_type);
    qdev_prop_set_uint32(dev, "init-svtor", board->reset_vectors);
    qdev_connect_clock_in(dev, "cpuclk", s->core_clock);
    qdev_connect_clock_in(dev, "refclk", s->reference_clock);
    object_property_set_link(OBJECT(dev), "memory",
                             OBJECT(get_system_memory()), &error_abort);
    sysbus_realize(SYS_BUS_DEVICE(dev), &error_fatal);
}

static void create_uarts(CorstoneMachineState *s, const CorstoneBoard *board)
{
    DeviceState *overflow;

    object_initialize_child(OBJECT(s), "uart-overflow", &s->uart_overflow,
                            TYPE_OR_IRQ);
    overflow = DEVICE(&s->uart_overflow);
    qdev_prop_set_uint16(overflow, "num-lines", 2 * CORSTONE_NUM_UARTS);
    qdev_realize(overflow, NULL, &error_fatal);
    qdev_connect_gpio_out(overflow, 0, nvic_input(s, UART_OVERFLOW_IRQ));
    for (int i = 0; i < CORSTONE_NUM_UARTS; i++) {
        SysBusDevice *uart;

        object_initialize_child(OBJECT(s), "uart[*]", &s->uart[i],
                                TYPE_CMSDK_APB_UART);
        uart = SYS_BUS_DEVICE(&s->uart[i]);
        qdev_prop_set_chr(DEVICE(uart), "chardev", serial_hd(i));
        qdev_prop_set_uint32(DEVICE(uart), "pclk-frq", PERIPHERALS_HZ);
        sysbus_realize(uart, &error_fatal);
        sysbus_connect_irq(uart, 0, nvic_input(s, uart_irqs[i][1]));
        sysbus_connect_irq(uart, 1, nvic_input(s, uart_irqs[i][0]));
        sysbus_connect_irq(uart, 2, qdev_get_gpio_in(overflow, 2 * i));
        sysbus_connect_irq(uart, 3, qdev_get_gpio_in(overflow, 2 * i + 1));
        sysbus_connect_irq(uart, 4, nvic_input(s, uart_irqs[i][2]));
        map_peripheral(s, uart, board->uarts + 0x1000 * i);
    }
}

static void create_timers(CorstoneMachineState *s)
{
    SysBusDevice *counter;

    object_initialize_child(OBJECT(s), "counter", &s->counter,
                            TYPE_SSE_COUNTER);
    counter = SYS_BUS_DEVICE(&s->counter);
    qdev_connect_clock_in(DEVICE(counter), "CLK", s->core_clock);
    sysbus_realize(counter, &error_fatal);
    memory_region_add_subregion_overlap(get_system_memory(),
                                        SYSCOUNTER_CONTROL,
                                        sysbus_mmio_get_region(counter, 0), 1);
    memory_region_add_subregion(&s->peripherals, SYSCOUNTER_STATUS,
                                sysbus_mmio_get_region(counter, 1));
    for (int i = 0; i < CORSTONE_NUM_TIMERS; i++) {
        SysBusDevice *timer;

        object_initialize_child(OBJECT(s), "timer[*]", &s->timer[i],
                                TYPE_SSE_TIMER);
        timer = SYS_BUS_DEVICE(&s->timer[i]);
        object_property_set_link(OBJECT(timer), "counter", OBJECT(counter),
                                 &error_abort);
        sysbus_realize(timer, &error_fatal);
        sysbus_connect_irq(timer, 0, nvic_input(s, timer_irqs[i]));
        map_peripheral(s, timer, SYSTIMERS + 0x1000 * i);
    }
}

static void create_board_control(CorstoneMachineState *s,
                                 const CorstoneBoard *board)
{
    object_initialize_child(OBJECT(s), "scc", &s->scc, TYPE_MPS2_SCC);
    qdev_prop_set_uint32(DEVICE(&s->scc), "scc-id", board->scc_id);
    sysbus_realize(SYS_BUS_DEVICE(&s->scc), &error_fatal);
    map_peripheral(s, &s->scc, board->scc);

    object_initialize_child(OBJECT(s), "fpgaio", &s->fpgaio,
                            TYPE_MPS2_FPGAIO);
    qdev_prop_set_uint32(DEVICE(&s->fpgaio), "prescale-clk", PERIPHERALS_HZ);
    qdev_prop_set_uint32(DEVICE(&s->fpgaio), "num-leds", 10);
    qdev_prop_set_bit(DEVICE(&s->fpgaio), "has-switches", true);
    sysbus_realize(SYS_BUS_DEVICE(&s->fpgaio), &error_fatal);
    map_peripheral(s, &s->fpgaio, board->fpgaio);
}

static void create_register_files(CorstoneMachineState *s,
                                  const CorstoneRegisterFile *info)
{
    for (; info && info->name; info++) {
        RegisterFileState *file = &s->register_file[s->num_register_files++];

        assert(s->num_register_files <= CORSTONE_MAX_REGISTER_FILES);
        object_initialize_child(OBJECT(s), info->name, file,
                                TYPE_REGISTER_FILE);
        for (int i = 0; i < ARRAY_SIZE(info->registers); i++) {
            const CorstoneRegister *reg = &info->registers[i];

            if (reg->value || reg->constant) {
                register_file_reset_value(file, reg->offset, reg->value,
                                          reg->constant);
            }
        }
        sysbus_realize(SYS_BUS_DEVICE(file), &error_fatal);
        map_peripheral(s, file, info->offset);
    }
}

static void create_npu(CorstoneMachineState *s, const CorstoneBoard *board)
{
    object_initialize_child(OBJECT(s), "npu", &s->npu, TYPE_ETHOS_U);
    sysbus_realize(SYS_BUS_DEVICE(&s->npu), &error_fatal);
    sysbus_connect_irq(SYS_BUS_DEVICE(&s->npu), 0,
                       nvic_input(s, board->npu_irq));
    map_peripheral(s, &s->npu, board->npu);
}

static void corstone_init(MachineState *machine)
{
    CorstoneMachineState *s = CORSTONE_MACHINE(machine);
    const CorstoneBoard *board = CORSTONE_MACHINE_GET_CLASS(s)->board;
    MemoryRegion *system = get_system_memory();

    if (machine->ram_size != DDR_SIZE) {
        g_autofree char *size = size_to_str(DDR_SIZE);

        error_report("the board's DDR has %s, no more and no less", size);
        exit(1);
    }
    s->core_clock = clock_new(OBJECT(s), "core-clock");
    clock_set_hz(s->core_clock, board->core_hz);
    s->reference_clock = clock_new(OBJECT(s), "reference-clock");
    clock_set_hz(s->reference_clock, REFERENCE_HZ);

    create_memories(s, board);
    memory_region_init(&s->peripherals, OBJECT(s), "peripherals",
                       PERIPHERALS_SIZE);
    memory_region_add_subregion(system, PERIPHERALS_BASE, &s->peripherals);
    memory_region_init_alias(&s->secure_peripherals, OBJECT(s),
                             "secure-peripherals", &s->peripherals, 0,
                             PERIPHERALS_SIZE);
    memory_region_add_subregion(system, SECURE_PERIPHERALS_BASE,
                                &s->secure_peripherals);
    create_unimplemented_device("other-peripherals", PERIPHERALS_BASE,
                                2 * (hwaddr)PERIPHERALS_SIZE);

    create_processor(s, board);
    create_uarts(s, board);
    create_timers(s);
    create_board_control(s, board);
    create_register_files(s, corstone_common_register_files);
    create_register_files(s, board->register_files);
    create_npu(s, board);
    armv7m_load_kernel(s->armv7m.cpu, machine->kernel_filename,
                       board->reset_vectors, board->memories[1].size);
}

/* The place of the memory whose option is name. */
static char **backend_place(CorstoneMachineState *s, const char *name)
{
    const CorstoneMemory *info = CORSTONE_MACHINE_GET_CLASS(s)->board->memories;

    for (int i = 0; info[i].name; i++) {
        if (!g_strcmp0(info[i].option, name)) {
            return &s->backend[i];
        }
    }
    g_assert_not_reached();
}

static void get_backend(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    char **place = backend_place(CORSTONE_MACHINE(obj), name);
    char *value = *place ? *place : (char *)"";

    visit_type_str(v, name, &value, errp);
}

static void set_backend(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    char **place = backend_place(CORSTONE_MACHINE(obj), name);
    char *value;

    if (visit_type_str(v, name, &value, errp)) {
        g_free(*place);
        *place = value;
    }
}

static void corstone_class_init(ObjectClass *oc, void *data)
{
    static const char *const options[] = {
        "code-sram", "internal-sram", "qspi",
    };
    MachineClass *mc = MACHINE_CLASS(oc);

    mc->init = corstone_init;
    mc->max_cpus = 1;
    mc->default_cpu_type = TYPE_CORTEX_M85;
    mc->default_ram_size = DDR_SIZE;
    mc->default_ram_id = "ddr";
    for (int i = 0; i < ARRAY_SIZE(options); i++) {
        object_class_property_add(oc, options[i], "str", get_backend,
                                  set_backend, NULL, NULL);
        object_class_property_set_description(oc, options[i],
                                              "Memory backend to use");
    }
}

/* QEMU's Cortex-M55 by another name: see README.md for what it lacks. */
static void cortex_m85_init(Object *obj)
{
    ARM_CPU(obj)->midr = CORTEX_M85_R1P0;
}

static const TypeInfo corstone_infos[] = {
    {
        .name = TYPE_CORSTONE_MACHINE,
        .parent = TYPE_MACHINE,
        .abstract = true,
        .instance_size = sizeof(CorstoneMachineState),
        .class_size = sizeof(CorstoneMachineClass),
        .class_init = corstone_class_init,
    }, {
        .name = TYPE_CORTEX_M85,
        .parent = ARM_CPU_TYPE_NAME("cortex-m55"),
        .instance_init = cortex_m85_init,
    },
};

DEFINE_TYPES(corstone_infos)
