// The use of freed memory by malloc, and the end of the process when there is none.
#include "internal.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void flowsystem_keep_freed_memory(void) {
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, 256 << 10);
  // Without this, each block of more than 128 KiB would be taken from the system separately.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

/// How much stack a script's nested calls may use: Lua allows 200 C calls.
enum { STACK = 1 << 20 };

/// Extends the main thread's stack by this size. The system would extend it on use, which without
/// memory would be a SIGSEGV; only the one page takes memory.
static __attribute__((noinline, no_sanitize("address"))) void extend_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur / 2 < STACK) return;
  volatile char depth[STACK];
  depth[0] = 0;
}

// No part of it needs memory.
_Noreturn void flowsystem_exit_without_memory(void) {
  // Prints the buffered output, unless another thread is using the stream.
  if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
    funlockfile(stdout);
  }
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  static const char sentence[] = ": not enough memory for the program itself\n";
  const char *name = flowsystem_program();
  if (write(STDERR_FILENO, name, strlen(name)) >= 0)
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
  flowsystem_leave();
  _exit(EXIT_FAILURE);
}

/// Replaces the function that Swift's runtime calls when malloc returns NULL, which would abort.
/// The release build links this instead of it (`--wrap`, see Package.swift): a handler of SIGABRT
/// would run after the runtime's own message, and couldn't distinguish one abort from another.
_Noreturn void __wrap__ZN5swift28swift_abortAllocationFailureEmm(size_t size, size_t alignment) {
  (void)size;
  (void)alignment;
  flowsystem_exit_without_memory();
}

/// std::set_new_handler, for the runtime's allocations in C++.
extern void (*_ZSt15set_new_handlerPFvvE(void (*handler)(void)))(void) __attribute__((weak));

void flowsystem_end_without_memory(void) {
  extend_stack();
  // A thread's own arena takes 64 MiB of address space and, when there isn't enough, a page for
  // each block, however small: the memory for Swift would be used up before a Lua state noticed.
  struct rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
  if (_ZSt15set_new_handlerPFvvE) _ZSt15set_new_handlerPFvvE(flowsystem_exit_without_memory);
}
