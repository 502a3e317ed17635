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
 * QEMU leaves a block at an access to a device, with `-icount` and for the
 * NPU's watchpoints, and goes on behind it with another block. A block is
 * therefore counted in parts, each to the next instruction that may access a
 * device: a row has the block's code to the end of its part.
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
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int,
                                                void *, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);

EXPORT int qemu_plugin_version = 1;
/* doctor reads it in the file */
EXPORT const char ethosu_sdk_version[] = "block-counts 1.0";

enum {
    MOST_PARTS = 1 << 17,
    MOST_CODE = 1 << 22,        /* bytes */
    MOST_SEGMENTS = 1 << 16,
    MOST_DELTAS = 1 << 22,
    MOST_MARKS = 64,
    BUCKETS = MOST_PARTS * 2,
    MOST_INSTRUCTIONS = 512,    /* in one of QEMU's blocks */
};

struct part {
    uint64_t executions;
    uint32_t start;             /* of the block, whose code is at `code_at` */
    uint32_t code_at;
    uint32_t code_bytes;        /* to the end of this part */
    uint32_t instructions;      /* the same */
    uint32_t number;            /* in the block: the one before is before it */
    uint32_t count;             /* of the block's parts */
};

struct segment {
    uint32_t mark;              /* the one that ended it: its place in argv */
    uint32_t deltas;
};

struct delta {
    uint64_t executions;
    uint32_t part;
    uint32_t reserved;
};

struct counts {
    char magic[8];
    uint64_t unplaced_instructions;
    uint32_t parts_used, code_used, segments_used, deltas_used;
    uint32_t marks_lost, ended;
    uint64_t reserved[2];
    struct part parts[MOST_PARTS];
    struct segment segments[MOST_SEGMENTS];
    struct delta deltas[MOST_DELTAS];
    uint8_t code[MOST_CODE];
};

static struct counts *counts;
static uint64_t at_mark[MOST_PARTS];    /* executions when the segment began */
static uint32_t buckets[BUCKETS];       /* a block's first part + 1 */
static struct {
    uint64_t address;
    int is_last;
} marks[MOST_MARKS];
static uint32_t mark_count;

/* What QEMU translates. */
struct block {
    uint32_t start;
    uint32_t bytes, instructions;
    uint8_t code[MOST_INSTRUCTIONS * 4];
    uint32_t cuts;                      /* parts that end before its end */
    uint32_t cut_bytes[MOST_INSTRUCTIONS], cut_at[MOST_INSTRUCTIONS];
};

static uint32_t hash(const struct block *block)
{
    uint32_t found = 2166136261u ^ block->start;        /* FNV-1a */

    for (uint32_t i = 0; i < block->bytes; i++) {
        found = (found ^ block->code[i]) * 16777619u;
    }
    return found ^ found >> 15;
}

static int is_same(const struct part *first, const struct block *block)
{
    const struct part *last = first + first->count - 1;

    return first->start == block->start && last->code_bytes == block->bytes &&
           !memcmp(&counts->code[first->code_at], block->code, block->bytes);
}

/*
 * The first part of the block, which may have been translated before; NULL
 * without a place.
 */
static struct part *parts_of(const struct block *block)
{
    uint32_t bucket = hash(block) % BUCKETS, count = block->cuts + 1;
    struct part *first;

    for (; buckets[bucket]; bucket = (bucket + 1) % BUCKETS) {
        first = &counts->parts[buckets[bucket] - 1];
        if (is_same(first, block)) {
            return first;
        }
    }
    if (count > MOST_PARTS - counts->parts_used ||
        block->bytes > MOST_CODE - counts->code_used) {
        return NULL;
    }
    first = &counts->parts[counts->parts_used];
    for (uint32_t i = 0; i < count; i++) {
        first[i] = (struct part) {
            .start = block->start,
            .code_at = counts->code_used,
            .code_bytes = i < block->cuts ? block->cut_bytes[i] : block->bytes,
            .instructions = i < block->cuts ? block->cut_at[i]
                                            : block->instructions,
            .number = i,
            .count = count,
        };
    }
    memcpy(&counts->code[counts->code_used], block->code, block->bytes);
    counts->code_used += block->bytes;
    buckets[bucket] = counts->parts_used + 1;
    counts->parts_used += count;
    return first;
}

static void end_segment(unsigned int vcpu, void *mark)
{
    uint32_t number = (uint32_t)(uintptr_t)mark, used = counts->deltas_used;

    (void)vcpu;
    if (counts->ended || counts->marks_lost) {
        return;
    }
    if (counts->segments_used == MOST_SEGMENTS ||
        counts->parts_used > MOST_DELTAS - used) {
        counts->marks_lost = 1;
        return;
    }
    for (uint32_t i = 0; i < counts->parts_used; i++) {
        uint64_t executions = counts->parts[i].executions - at_mark[i];

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

/*
 * Whether an instruction may access a device: LDR, STR and their forms for
 * bytes and halfwords, by a register that is neither SP nor PC. T16: 0b0101,
 * 0b0110, 0b0111, 0b1000. T32: 0b1111100. Devices are accessed by no others,
 * as Arm's compilers have it for `volatile`.
 */
static int may_access_device(const uint8_t *code)
{
    uint32_t first = code[0] | code[1] << 8;

    if (size_of(code) == 4) {
        return first >> 9 == 0x7c && (first & 15) != 13 && (first & 15) != 15;
    }
    return first >> 12 >= 5 && first >> 12 <= 8;
}

static void watch_marks(struct qemu_plugin_insn *insn)
{
    for (uint32_t mark = 0; mark < mark_count; mark++) {
        if (marks[mark].address == qemu_plugin_insn_vaddr(insn)) {
            qemu_plugin_register_vcpu_insn_exec_cb(
                insn, end_segment, QEMU_PLUGIN_CB_NO_REGS,
                (void *)(uintptr_t)mark);
        }
    }
}

static int read_block(struct qemu_plugin_tb *tb, struct block *block)
{
    size_t instructions = qemu_plugin_tb_n_insns(tb);

    block->bytes = block->cuts = 0;
    block->instructions = (uint32_t)instructions;
    if (!instructions || instructions > MOST_INSTRUCTIONS) {
        return 0;
    }
    for (uint32_t i = 0; i < instructions; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *data = qemu_plugin_insn_data(insn);
        uint32_t size = size_of(data);

        if (!i) {
            block->start = (uint32_t)qemu_plugin_insn_vaddr(insn);
        }
        memcpy(&block->code[block->bytes], data, size);
        block->bytes += size;
        if (may_access_device(data) && i + 1 < instructions) {
            block->cut_bytes[block->cuts] = block->bytes;
            block->cut_at[block->cuts++] = i + 1;
        }
    }
    return 1;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    static struct block block;          /* QEMU translates one at a time */
    struct part *first = NULL;
    size_t instructions = qemu_plugin_tb_n_insns(tb);

    (void)id;
    for (size_t i = 0; i < instructions; i++) {
        watch_marks(qemu_plugin_tb_get_insn(tb, i));
    }
    if (read_block(tb, &block)) {
        first = parts_of(&block);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(
        tb, QEMU_PLUGIN_INLINE_ADD_U64,
        first ? &first->executions : &counts->unplaced_instructions,
        first ? 1 : instructions);
    for (uint32_t i = 0; first && i < block.cuts; i++) {
        qemu_plugin_register_vcpu_insn_exec_inline(
            qemu_plugin_tb_get_insn(tb, block.cut_at[i]),
            QEMU_PLUGIN_INLINE_ADD_U64, &first[i + 1].executions, 1);
    }
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
    memcpy(counts->magic, "EUBLOCK2", sizeof(counts->magic));
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
