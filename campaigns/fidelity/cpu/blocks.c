/* A plugin of QEMU that counts how often each translated block runs during a function's first call.
 *
 * Arguments: from=ADDRESS, the function; to=ADDRESS, where its caller goes on; out=FILE. The file holds records of
 * struct block while QEMU runs: it may be killed at any time. The declarations stand for QEMU's qemu-plugin.h. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);

enum { MOST_BLOCKS = 1 << 16, MOST_BYTES = 1 << 11, ADD = 0, NO_REGISTERS = 0 };

struct block {
  uint64_t start, size, instructions, executions, before, after;
  uint8_t code[MOST_BYTES];
};

enum phase { BEFORE, DURING, AFTER };

static struct block *blocks;
static size_t count;
static uint64_t from, to;
static enum phase phase;

static void enter(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  if (phase != BEFORE) return;
  phase = DURING;
  for (size_t i = 0; i < count; i++) blocks[i].before = blocks[i].executions;
}

static void leave(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  if (phase != DURING) return;
  phase = AFTER;
  for (size_t i = 0; i < count; i++) blocks[i].after = blocks[i].executions;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  if (count == MOST_BLOCKS) abort();
  struct block *b = &blocks[count++];
  b->start = qemu_plugin_tb_vaddr(tb);
  b->instructions = qemu_plugin_tb_n_insns(tb);
  for (size_t i = 0; i < b->instructions; i++) {
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
    size_t size = qemu_plugin_insn_size(instruction);
    if (b->size + size > MOST_BYTES) abort();
    memcpy(b->code + b->size, qemu_plugin_insn_data(instruction), size);
    b->size += size;
  }
  if (b->start == from) qemu_plugin_register_vcpu_tb_exec_cb(tb, enter, NO_REGISTERS, NULL);
  if (b->start == to) qemu_plugin_register_vcpu_tb_exec_cb(tb, leave, NO_REGISTERS, NULL);
  qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD, &b->executions, 1);
}

static const char *value_of(const char *argument, const char *name) {
  size_t size = strlen(name);
  return strncmp(argument, name, size) == 0 ? argument + size : NULL;
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
  (void)info;
  const char *path = NULL, *value;
  for (int i = 0; i < argc; i++) {
    if ((value = value_of(argv[i], "from="))) from = strtoull(value, NULL, 0);
    if ((value = value_of(argv[i], "to="))) to = strtoull(value, NULL, 0);
    if ((value = value_of(argv[i], "out="))) path = value;
  }
  int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0666) : -1;
  size_t size = sizeof(struct block) * MOST_BLOCKS;
  if (file < 0 || ftruncate(file, (off_t)size)) return 1;
  blocks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (blocks == MAP_FAILED) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  return 0;
}
