// Memory that this target needs for itself, beside that of Lua. A test can make one request fail.
#include <stdlib.h>

#include "internal.h"

/// Which request of this thread fails, counted from 1; 0 for none.
static _Thread_local uint64_t failing;

static bool is_to_fail(void) { return failing != 0 && --failing == 0; }

// As in CFlowSystem/allocation.c: for programs whose malloc isn't replaced.
__attribute__((weak)) void *__real_malloc(size_t size) { return malloc(size); }
__attribute__((weak)) void *__real_realloc(void *block, size_t size) {
  return realloc(block, size);
}
__attribute__((weak)) void *__real_calloc(size_t count, size_t size) { return calloc(count, size); }
__attribute__((weak)) void *__real_aligned_alloc(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}

void *flowlua_resize_own(void *block, size_t size) {
  return is_to_fail() ? NULL : __real_realloc(block, size);
}

void *flowlua_zeroed_own(size_t size) { return is_to_fail() ? NULL : __real_calloc(1, size); }

void *flowlua_aligned_own(size_t alignment, size_t size) {
  return is_to_fail() ? NULL : __real_aligned_alloc(alignment, size);
}

char *flowlua_copy_own(const char *text) { return is_to_fail() ? NULL : strdup(text); }

uint64_t flowlua_fail_own_allocation(uint64_t n) {
  uint64_t left = failing;
  failing = n;
  return left;
}
