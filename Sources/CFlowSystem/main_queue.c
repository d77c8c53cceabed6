#include "CFlowSystem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The functions with which Foundation's run loop serves Dispatch's main queue. Weak, so that no
// program needs Dispatch for it: it is there when Swift's concurrency runtime is. A program that
// links the runtime statically contains the functions; in other programs they come with a shared
// library that only the runtime needs, where the linker doesn't search for them.
extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *unused) __attribute__((weak));

// The label of a queue, NULL for the one whose work the thread does. It is documented.
extern const char *dispatch_queue_get_label(void *queue) __attribute__((weak));

typedef const char *get_label(void *queue);
typedef int get_handle(void);
typedef void run_queue(void *unused);

static run_queue *main_queue_callback(void) {
  if (_dispatch_main_queue_callback_4CF) return _dispatch_main_queue_callback_4CF;
  static run_queue *found;
  if (found == NULL) found = (run_queue *)dlsym(RTLD_DEFAULT, "_dispatch_main_queue_callback_4CF");
  return found;
}

flowsystem_place flowsystem_blocked_place(void) {
  get_label *function = dispatch_queue_get_label;
  if (function == NULL) function = (get_label *)dlsym(RTLD_DEFAULT, "dispatch_queue_get_label");
  const char *label = function != NULL ? function(NULL) : NULL;
  if (label == NULL) return FLOWSYSTEM_OWN_THREAD;
  // A loop of the main thread runs the main actor's code itself, unless it is within such code; elsewhere
  // only Dispatch does.
  if (strcmp(label, "com.apple.main-thread") == 0) return FLOWSYSTEM_MAIN_ACTOR;
  // So Swift's concurrency runtime names its queues.
  const char *pool = "Swift global concurrent queue";
  return strncmp(label, pool, strlen(pool)) == 0 ? FLOWSYSTEM_POOL_THREAD : FLOWSYSTEM_OWN_THREAD;
}

void flowsystem_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

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
