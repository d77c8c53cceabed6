// The event loop whose code a thread executes.
#include "internal.h"

static _Thread_local void *current_loop;

void *flowsystem_current_loop(void) { return current_loop; }

void flowsystem_set_current_loop(void *loop) { current_loop = loop; }
