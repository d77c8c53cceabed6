#include "CFlowSystem.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

// The functions with which Foundation's run loop serves Dispatch's main queue. Weak, so that no
// program needs Dispatch for it: it is there when Swift's concurrency runtime is. A program that
// links the runtime statically contains the functions; in other programs they come with a shared
// library that only the runtime needs, where the linker doesn't search for them.
extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *unused) __attribute__((weak));

typedef int get_handle(void);
typedef void run_queue(void *unused);

static run_queue *main_queue_callback(void) {
  if (_dispatch_main_queue_callback_4CF) return _dispatch_main_queue_callback_4CF;
  static run_queue *found;
  if (found == NULL) found = (run_queue *)dlsym(RTLD_DEFAULT, "_dispatch_main_queue_callback_4CF");
  return found;
}

bool flowsystem_is_main_thread(void) { return syscall(SYS_gettid) == getpid(); }

int flowsystem_main_queue_descriptor(void) {
  get_handle *function = _dispatch_get_main_queue_handle_4CF;
  if (function == NULL)
    function = (get_handle *)dlsym(RTLD_DEFAULT, "_dispatch_get_main_queue_handle_4CF");
  // Without a descriptor left, Dispatch would end the process.
  int spare = flowsystem_eventfd();
  if (spare < 0) return -1;
  close(spare);
  return function != NULL && main_queue_callback() != NULL ? function() : -1;
}

bool flowsystem_drain_main_queue(int descriptor) {
  uint64_t count;
  if (read(descriptor, &count, sizeof count) != sizeof count) return false;
  main_queue_callback()(NULL);
  return true;
}
