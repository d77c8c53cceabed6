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

// Swift's runtime, libstdc++ and the code that the Swift compiler makes call malloc at hundreds of places that don't look
// at what it returns, many of them before main. The release program calls these functions instead (`--wrap`, see
// Package.swift), and never continues without memory: a handler of SIGSEGV or SIGILL couldn't distinguish one such fault
// from another. What can do without the memory calls the `__real_` functions.

void *__wrap_malloc(size_t size) {
  void *block = __real_malloc(size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *block = __real_calloc(count, size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

void *__wrap_realloc(void *block, size_t size) {
  void *moved = __real_realloc(block, size);
  // Without a size the block was freed.
  if (moved == NULL && size != 0) flowsystem_exit_without_memory();
  return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  void *block = __real_aligned_alloc(alignment, size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
  if (__real_posix_memalign(block, alignment, size) != 0) flowsystem_exit_without_memory();
  return 0;
}

void flowsystem_end_without_memory(void) {
  extend_stack();
  // A thread's own arena takes 64 MiB of address space and, when there isn't enough, a page for
  // each block, however small: the memory for Swift would be used up before a Lua state noticed.
  struct rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
}
