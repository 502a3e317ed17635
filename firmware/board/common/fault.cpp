// Processor exceptions → one report → the end of the run.
// Sources: Armv8-M Architecture Reference Manual: exception stacking, CFSR, HFSR, SFSR.
#include "hal/fault.hpp"

#include "board.hpp"
#include "hal/board.hpp"
#include "system_control.hpp"

namespace ethosu_sdk {
namespace {

struct Cause {
  std::uint32_t bit;
  const char* text;
};

constexpr std::uint32_t stack_overflow_bit = 1U << 20;
constexpr std::uint32_t mmfar_valid = 1U << 7;
constexpr std::uint32_t bfar_valid = 1U << 15;
constexpr std::uint32_t sfar_valid = 1U << 6;

constexpr Cause cfsr_causes[] = {
    {stack_overflow_bit, "UsageFault: stack overflow (STKOF)"},
    {1U << 0, "MemManage: instruction access violation (IACCVIOL)"},
    {1U << 1, "MemManage: data access violation (DACCVIOL)"},
    {1U << 3, "MemManage: fault on exception return (MUNSTKERR)"},
    {1U << 4, "MemManage: fault on exception entry (MSTKERR)"},
    {1U << 5, "MemManage: fault on FP state preservation (MLSPERR)"},
    {1U << 8, "BusFault: instruction fetch (IBUSERR)"},
    {1U << 9, "BusFault: precise data access (PRECISERR)"},
    {1U << 10, "BusFault: imprecise data access (IMPRECISERR)"},
    {1U << 11, "BusFault: fault on exception return (UNSTKERR)"},
    {1U << 12, "BusFault: fault on exception entry (STKERR)"},
    {1U << 13, "BusFault: fault on FP state preservation (LSPERR)"},
    {1U << 16, "UsageFault: undefined instruction (UNDEFINSTR)"},
    {1U << 17, "UsageFault: invalid EPSR state (INVSTATE)"},
    {1U << 18, "UsageFault: invalid PC on exception return (INVPC)"},
    {1U << 19, "UsageFault: coprocessor not enabled (NOCP)"},
    {1U << 24, "UsageFault: unaligned access (UNALIGNED)"},
    {1U << 25, "UsageFault: division by zero (DIVBYZERO)"},
};

constexpr Cause sfsr_causes[] = {
    {1U << 0, "SecureFault: invalid entry point (INVEP)"},
    {1U << 1, "SecureFault: invalid integrity signature (INVIS)"},
    {1U << 2, "SecureFault: invalid exception return (INVER)"},
    {1U << 3, "SecureFault: attribution unit violation (AUVIOL)"},
    {1U << 4, "SecureFault: invalid transition (INVTRAN)"},
    {1U << 5, "SecureFault: lazy FP state preservation (LSPERR)"},
    {1U << 7, "SecureFault: lazy FP state activation (LSERR)"},
};

// By exception number, for a fault whose status registers say no more.
constexpr const char* exception_names[] = {
    "thread mode",  "reset",       "NMI",
    "HardFault",    "MemManage",   "BusFault",
    "UsageFault",   "SecureFault", "reserved 8",
    "reserved 9",   "reserved 10", "SVCall without a handler",
    "DebugMonitor", "reserved 13", "PendSV without a handler",
};

hal::FaultReporter reporter = nullptr;
volatile bool reporting = false;

template <std::size_t N>
const char* first_cause(const Cause (&causes)[N], std::uint32_t bits) {
  for (const Cause& cause : causes) {
    if ((bits & cause.bit) != 0) {
      return cause.text;
    }
  }
  return nullptr;
}

const char* cause_text(std::uint32_t exception, std::uint32_t cfsr, std::uint32_t sfsr, std::uint32_t hfsr) {
  constexpr std::uint32_t vector_table_read = 1U << 1;
  if ((hfsr & vector_table_read) != 0) {
    return "HardFault: vector table read (VECTTBL)";
  }
  if (const char* text = first_cause(cfsr_causes, cfsr)) {
    return text;
  }
  if (const char* text = first_cause(sfsr_causes, sfsr)) {
    return text;
  }
  return exception < sizeof exception_names / sizeof *exception_names ? exception_names[exception]
                                                                      : "interrupt without a handler";
}

std::uint32_t fault_address(std::uint32_t cfsr, std::uint32_t sfsr) {
  using namespace board;
  if ((cfsr & mmfar_valid) != 0) {
    return register_at(scb_mmfar);
  }
  if ((cfsr & bfar_valid) != 0) {
    return register_at(scb_bfar);
  }
  return (sfsr & sfar_valid) != 0 ? register_at(scb_sfar) : 0;
}

// r0-r3, r12, lr, pc, xpsr, as the processor stacks them; s0-s15, FPSCR and VPR follow in an extended frame.
struct StackedFrame {
  std::uint32_t r[4];
  std::uint32_t r12;
  std::uint32_t lr;
  std::uint32_t pc;
  std::uint32_t xpsr;
};

std::uint32_t sp_before(const StackedFrame* frame, std::uint32_t exc_return) {
  constexpr std::uint32_t basic_frame_flag = 1U << 4;  // EXC_RETURN.FType
  constexpr std::uint32_t aligner_flag = 1U << 9;      // xPSR: one word was skipped to align the frame
  constexpr std::uint32_t fp_bytes = 18 * sizeof(std::uint32_t);
  auto sp = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(frame)) +
            static_cast<std::uint32_t>(sizeof *frame);
  sp += (exc_return & basic_frame_flag) != 0 ? 0 : fp_bytes;
  return sp + ((frame->xpsr & aligner_flag) != 0 ? 4 : 0);
}

hal::Fault describe(const StackedFrame* frame, std::uint32_t exception, std::uint32_t exc_return) {
  using namespace board;
  const std::uint32_t cfsr = register_at(scb_cfsr);
  const std::uint32_t sfsr = register_at(scb_sfsr);
  const std::uint32_t hfsr = register_at(scb_hfsr);
  const char* cause = cause_text(exception, cfsr, sfsr, hfsr);
  const std::uint32_t address = fault_address(cfsr, sfsr);
  if ((cfsr & stack_overflow_bit) != 0) {  // no frame was written
    const auto limit = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(frame));
    return {cause, 0, 0, limit, 0, cfsr, hfsr, address};
  }
  return {cause, frame->pc, frame->lr, sp_before(frame, exc_return), frame->xpsr, cfsr, hfsr, address};
}

}  // namespace

void hal::set_fault_reporter(FaultReporter function) {
  reporter = function;
}

extern "C" [[noreturn]] __attribute__((used)) void board_fault(const StackedFrame* frame,
                                                               std::uint32_t exception,
                                                               std::uint32_t exc_return) {
  while (board::ending()) {  // the simulator did not take the exit: stay put for it to notice the EOT
    asm volatile("wfi");
  }
  if (!reporting && reporter != nullptr) {
    reporting = true;  // a fault in here comes back, and ends the run at once
    reporter(describe(frame, exception, exc_return));
  }
  hal::exit(hal::exit_code_fault);
}

// Takes the frame's address from the stack that was in use, then moves to a stack of its own: the main stack
// may be the cause. MSPLIM first goes to the lower of the two limits.
__attribute__((naked)) void board::fault_entry() {
  asm volatile(
      "tst lr, #4\n"
      "ite eq\n"
      "mrseq r0, msp\n"
      "mrsne r0, psp\n"
      "mrs r1, ipsr\n"
      "mov r2, lr\n"
      "ldr r3, =board_fault_stack_limit\n"
      "msr msplim, r3\n"
      "ldr r3, =board_fault_stack_top\n"
      "msr msp, r3\n"
      "b board_fault\n");
}

}  // namespace ethosu_sdk
