// What malloc does with memory that is free, and what happens when there is none.
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
  // Without this, blocks of more than 128 KiB would be taken from the system each by itself.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

/// How much stack a script's nested calls may take: Lua allows 200 calls of C.
enum { STACK = 1 << 20 };

/// Has the main thread's stack reach so far down. The system extends it when it is used, which without
/// memory would be a SIGSEGV; only the one page takes memory.
static __attribute__((noinline, no_sanitize("address"))) void extend_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur / 2 < STACK) return;
  volatile char depth[STACK];
  depth[0] = 0;
}

/// Ends the process with a sentence. Nothing in it needs memory.
static _Noreturn void end_without_memory(void) {
  // What was printed is printed, unless it is in another thread's hands.
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
  flowsystem_end_programs();
  _exit(EXIT_FAILURE);
}

/// What Swift's runtime calls when malloc returns NULL to it, which would abort. The release build links
/// this in its place (`--wrap`, see Package.swift): a handler of SIGABRT would come after the runtime's
/// own message, and couldn't distinguish one abort from another.
_Noreturn void __wrap__ZN5swift28swift_abortAllocationFailureEmm(size_t size, size_t alignment) {
  (void)size;
  (void)alignment;
  end_without_memory();
}

/// std::set_new_handler, for what the runtime allocates in C++.
extern void (*_ZSt15set_new_handlerPFvvE(void (*handler)(void)))(void) __attribute__((weak));

void flowsystem_end_without_memory(void) {
  extend_stack();
  // An arena of a thread's own takes 64 MiB of address space and, once it can't, a page for each block,
  // however small: what is left for Swift would be gone before a Lua state took note.
  struct rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    mallopt(M_ARENA_MAX, 1);
  if (_ZSt15set_new_handlerPFvvE) _ZSt15set_new_handlerPFvvE(end_without_memory);
}
