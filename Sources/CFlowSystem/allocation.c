// Memory that this target needs for itself. A test can make one request fail.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/// Which request of this thread fails, counted from 1; 0 for none.
static _Thread_local uint64_t failing;

static bool is_to_fail(void) { return failing != 0 && --failing == 0; }

// For programs whose malloc isn't replaced; where it is, the linker takes the functions of the C library instead.
__attribute__((weak)) void *__real_malloc(size_t size) { return malloc(size); }
__attribute__((weak)) void *__real_calloc(size_t count, size_t size) { return calloc(count, size); }
__attribute__((weak)) void *__real_realloc(void *block, size_t size) {
  return realloc(block, size);
}
__attribute__((weak)) void *__real_aligned_alloc(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}
__attribute__((weak)) int __real_posix_memalign(void **block, size_t alignment, size_t size) {
  return posix_memalign(block, alignment, size);
}

void *flowsystem_resize(void *block, size_t size) {
  return is_to_fail() ? NULL : __real_realloc(block, size);
}

void *flowsystem_zeroed(size_t size) { return is_to_fail() ? NULL : __real_calloc(1, size); }

char *flowsystem_copy_text(const char *text, size_t length) {
  return is_to_fail() ? NULL : strndup(text, length);
}

uint64_t flowsystem_fail_allocation(uint64_t n) {
  uint64_t left = failing;
  failing = n;
  return left;
}
