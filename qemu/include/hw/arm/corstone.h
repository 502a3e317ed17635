/*
 * Arm Corstone-310 and Corstone-320 with a Cortex-M85 and an Ethos-U
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_ARM_CORSTONE_H
#define HW_ARM_CORSTONE_H

#include "qapi/error.h"
#include "hw/arm/armv7m.h"
#include "hw/boards.h"
#include "hw/char/cmsdk-apb-uart.h"
#include "hw/misc/ethos-u.h"
#include "hw/misc/mps2-fpgaio.h"
#include "hw/misc/mps2-scc.h"
#include "hw/misc/register-file.h"
#include "hw/or-irq.h"
#include "hw/timer/sse-counter.h"
#include "hw/timer/sse-timer.h"
#include "qom/object.h"

#define TYPE_CORSTONE_MACHINE "corstone-common"
OBJECT_DECLARE_TYPE(CorstoneMachineState, CorstoneMachineClass,
                    CORSTONE_MACHINE)

#define CORSTONE_MAX_MEMORIES 8
#define CORSTONE_MAX_REGISTER_FILES 16
#define CORSTONE_NUM_UARTS 6
#define CORSTONE_NUM_TIMERS 4

/* One memory. An option names the machine property that may back it. */
typedef struct CorstoneMemory {
    const char *name;
    hwaddr base;
    hwaddr secure_alias; /* equal to base when there is one address only */
    uint64_t size;
    const char *option;
} CorstoneMemory;

/* A register that has a value after reset, for ever if it is constant. */
typedef struct CorstoneRegister {
    hwaddr offset;
    uint32_t value;
    bool constant;
} CorstoneRegister;

/* A peripheral of which there are the registers and no more. */
typedef struct CorstoneRegisterFile {
    const char *name;
    hwaddr offset;
    CorstoneRegister registers[4]; /* none with neither value nor constant */
} CorstoneRegisterFile;

/* Those of all boards; the last one has no name. */
extern const CorstoneRegisterFile corstone_common_register_files[];

/* What distinguishes a board from the other: facts only. */
typedef struct CorstoneBoard {
    const char *description;
    const CorstoneMemory *memories; /* the last one has no name */
    const CorstoneRegisterFile *register_files; /* likewise, or NULL */
    uint32_t reset_vectors;
    uint32_t core_hz;
    uint32_t scc_id;
    /* Offsets in the peripherals' 256 MiB, which appear at both aliases. */
    hwaddr npu;
    hwaddr scc;
    hwaddr fpgaio;
    hwaddr uarts;
    int npu_irq;
} CorstoneBoard;

struct CorstoneMachineClass {
    MachineClass parent_class;

    const CorstoneBoard *board;
};

struct CorstoneMachineState {
    MachineState parent_obj;

    ARMv7MState armv7m;
    MemoryRegion memory[CORSTONE_MAX_MEMORIES];
    MemoryRegion secure_memory[CORSTONE_MAX_MEMORIES];
    char *backend[CORSTONE_MAX_MEMORIES]; /* ids of objects, or NULL */
    MemoryRegion peripherals;
    MemoryRegion secure_peripherals;
    CMSDKAPBUART uart[CORSTONE_NUM_UARTS];
    qemu_or_irq uart_overflow;
    SSECounter counter;
    SSETimer timer[CORSTONE_NUM_TIMERS];
    MPS2SCC scc;
    MPS2FPGAIO fpgaio;
    EthosUState npu;
    RegisterFileState register_file[CORSTONE_MAX_REGISTER_FILES];
    int num_register_files;
    Clock *core_clock;
    Clock *reference_clock;
};

#endif
