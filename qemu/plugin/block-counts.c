/*
 * A TCG plugin that counts how often each block of the guest's code runs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/*
 *     -plugin block-counts.so,fd=N[,mark=ADDRESS…][,last=ADDRESS]
 *
 * The counts go to the file that is open as N, which both sides map: QEMU may
 * be killed at any time. struct counts is its layout, and the file has exactly
 * its size. All is bounded: code that has no place is counted in
 * `unplaced_instructions`, and marks that have none set `marks_lost`.
 *
 * Marks are addresses of instructions. When the guest executes one, a segment
 * ends: what each block ran since the mark before is appended to `deltas`.
 * After the mark `last` there are no more segments.
 *
 * The declarations stand for include/qemu/qemu-plugin.h of QEMU 7.2 (version 1
 * of the interface), which is in no binary package of Debian. The instructions
 * are Thumb, as on every Cortex-M.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
typedef void (*vcpu_tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*vcpu_udata_cb)(unsigned int, void *);
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0, QEMU_PLUGIN_CB_NO_REGS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, vcpu_tb_trans_cb);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int,
                                              void *, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
                                            vcpu_udata_cb, int, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);

EXPORT int qemu_plugin_version = 1;
/* doctor reads it in the file */
EXPORT const char ethosu_sdk_version[] = "block-counts 1.0";

enum {
    MOST_BLOCKS = 1 << 16,
    MOST_CODE = 1 << 22,        /* bytes */
    MOST_SEGMENTS = 1 << 18,
    MOST_DELTAS = 1 << 22,
    MOST_MARKS = 64,
    BUCKETS = MOST_BLOCKS * 2,
    MOST_BLOCK_CODE = 4096,     /* QEMU's blocks have at most 512 instructions */
};

struct block {
    uint64_t executions;
    uint32_t start;
    uint32_t code_at;           /* in `code` */
    uint32_t code_bytes;
    uint32_t instructions;
};

struct segment {
    uint32_t mark;              /* the one that ended it: its place in argv */
    uint32_t deltas;
};

struct delta {
    uint64_t executions;
    uint32_t block;
    uint32_t reserved;
};

struct counts {
    char magic[8];
    uint64_t unplaced_instructions;
    uint32_t blocks_used, code_used, segments_used, deltas_used;
    uint32_t marks_lost, ended;
    uint64_t reserved[2];
    struct block blocks[MOST_BLOCKS];
    struct segment segments[MOST_SEGMENTS];
    struct delta deltas[MOST_DELTAS];
    uint8_t code[MOST_CODE];
};

static struct counts *counts;
static uint64_t at_mark[MOST_BLOCKS];   /* executions when the segment began */
static uint32_t buckets[BUCKETS];       /* block + 1; 0 is free */
static struct {
    uint64_t address;
    int is_last;
} marks[MOST_MARKS];
static uint32_t mark_count;

static uint32_t hash(uint32_t start, const uint8_t *code, uint32_t bytes)
{
    uint32_t found = 2166136261u ^ start;       /* FNV-1a */

    for (uint32_t i = 0; i < bytes; i++) {
        found = (found ^ code[i]) * 16777619u;
    }
    return found ^ found >> 15;
}

/* The block, which may have been translated before; NULL without a place. */
static struct block *block_of(uint32_t start, const uint8_t *code,
                              uint32_t bytes, uint32_t instructions)
{
    uint32_t bucket = hash(start, code, bytes) % BUCKETS;
    struct block *b;

    for (; buckets[bucket]; bucket = (bucket + 1) % BUCKETS) {
        b = &counts->blocks[buckets[bucket] - 1];
        if (b->start == start && b->code_bytes == bytes &&
            !memcmp(&counts->code[b->code_at], code, bytes)) {
            return b;
        }
    }
    if (counts->blocks_used == MOST_BLOCKS ||
        bytes > MOST_CODE - counts->code_used) {
        return NULL;
    }
    b = &counts->blocks[counts->blocks_used];
    *b = (struct block) {
        .start = start,
        .code_at = counts->code_used,
        .code_bytes = bytes,
        .instructions = instructions,
    };
    memcpy(&counts->code[b->code_at], code, bytes);
    counts->code_used += bytes;
    buckets[bucket] = ++counts->blocks_used;
    return b;
}

static void end_segment(unsigned int vcpu, void *mark)
{
    uint32_t number = (uint32_t)(uintptr_t)mark, used = counts->deltas_used;

    (void)vcpu;
    if (counts->ended || counts->marks_lost) {
        return;
    }
    if (counts->segments_used == MOST_SEGMENTS ||
        counts->blocks_used > MOST_DELTAS - used) {
        counts->marks_lost = 1;
        return;
    }
    for (uint32_t i = 0; i < counts->blocks_used; i++) {
        uint64_t executions = counts->blocks[i].executions - at_mark[i];

        if (executions) {
            counts->deltas[used++] = (struct delta) { executions, i, 0 };
            at_mark[i] += executions;
        }
    }
    counts->segments[counts->segments_used] = (struct segment) {
        number, used - counts->deltas_used
    };
    counts->deltas_used = used;
    counts->segments_used++;
    counts->ended = marks[number].is_last;
}

/* Bytes of an instruction: those of 32 bits begin with 0b111xx, xx not 0. */
static uint32_t size_of(const uint8_t *code)
{
    return code[1] >> 3 >= 0x1d ? 4 : 2;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    uint8_t code[MOST_BLOCK_CODE];
    uint32_t bytes = 0, instructions = (uint32_t)qemu_plugin_tb_n_insns(tb);
    uint64_t start = 0;
    struct block *b = NULL;

    (void)id;
    for (uint32_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *data = qemu_plugin_insn_data(insn);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        uint32_t size = size_of(data);

        start = i ? start : address;
        if (bytes <= sizeof(code) - size) {
            memcpy(&code[bytes], data, size);
            bytes += size;
        }
        for (uint32_t mark = 0; mark < mark_count; mark++) {
            if (marks[mark].address == address) {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    insn, end_segment, QEMU_PLUGIN_CB_NO_REGS,
                    (void *)(uintptr_t)mark);
            }
        }
    }
    if (!instructions) {
        return;
    }
    b = block_of((uint32_t)start, code, bytes, instructions);
    qemu_plugin_register_vcpu_tb_exec_inline(
        tb, QEMU_PLUGIN_INLINE_ADD_U64,
        b ? &b->executions : &counts->unplaced_instructions,
        b ? 1 : instructions);
}

static int refuse(const char *what, const char *argument)
{
    fprintf(stderr, "block-counts: %s: %s\n", what, argument);
    return 1;
}

static int open_counts(const char *number)
{
    int fd = atoi(number);
    struct stat status;

    if (fstat(fd, &status) || status.st_size != sizeof(struct counts)) {
        return refuse("not a file for counts of this version", number);
    }
    counts = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED) {
        return refuse("cannot map the file", number);
    }
    memcpy(counts->magic, "EUBLOCK1", sizeof(counts->magic));
    return 0;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info,
                               int argc, char **argv);

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
                        char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        int is_last = !strncmp(argv[i], "last=", 5);

        if (!strncmp(argv[i], "fd=", 3)) {
            if (open_counts(value + 1)) {
                return 1;
            }
        } else if (is_last || !strncmp(argv[i], "mark=", 5)) {
            if (mark_count == MOST_MARKS) {
                return refuse("too many marks", argv[i]);
            }
            marks[mark_count].address = strtoull(value + 1, NULL, 0);
            marks[mark_count++].is_last = is_last;
        } else {
            return refuse("unknown argument", argv[i]);
        }
    }
    if (!counts) {
        return refuse("missing argument", "fd=N");
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
