// What malloc does with memory that is free.
#include "CFlowSystem.h"

#include <malloc.h>

void flowsystem_keep_freed_memory(void) {
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, 256 << 10);
  // Without this, blocks of more than 128 KiB would be taken from the system each by itself.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
}
