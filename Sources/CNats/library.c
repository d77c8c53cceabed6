// Opening the library: no program that uses one machine only pays for it.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "CFlowSystem.h"
#include "CNats.h"

static cnats_library functions;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];
/// Whether the library was opened, or is known not to be there.
static atomic_bool is_known;

static bool find(void *library, const char *name, void *place) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    snprintf(problem, sizeof problem, "libnats is too old: it has no %s", name);
    return false;
  }
  // A pointer to a function: C has no conversion from one to data.
  memcpy(place, &symbol, sizeof symbol);
  return true;
}

static bool find_all(void *library) {
#define FIND(NAME) find(library, #NAME, &functions.NAME) &&
  return CNATS_FUNCTIONS(FIND) true;
#undef FIND
}

sigset_t cnats_block_signals(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

void cnats_restore_signals(sigset_t before) { pthread_sigmask(SIG_SETMASK, &before, NULL); }

bool cnats_begin_writing(sigset_t *before) {
  sigset_t pipe, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, before);
  return sigismember(&pending, SIGPIPE) == 1;
}

void cnats_end_writing(bool was_pending, sigset_t before) {
  if (!was_pending) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    struct timespec now = {0, 0};
    while (sigtimedwait(&pipe, NULL, &now) == -1 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/// The library in the supported releases of Debian, the newest first. Of all these the functions above are the same;
/// no structure of the library is used.
static const struct {
  const char *file, *package, *release;
} releases[] = {
    {"libnats.so.3.10", "libnats3.10", "13"},
    {"libnats.so.3.4", "libnats3.4", "12"},
};
enum { RELEASES = sizeof releases / sizeof *releases };

/// The name of the package in the system's release; Debian 12's where it isn't known.
static const char *package_here(void) {
  const char *package = releases[RELEASES - 1].package;
  FILE *file = fopen("/etc/os-release", "re");
  char line[256], version[16];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VERSION_ID=\"%15[0-9]", version) != 1) continue;
    for (int i = 0; i < RELEASES; i++) {
      if (strcmp(releases[i].release, version) == 0) package = releases[i].package;
    }
  }
  if (file != NULL) fclose(file);
  return package;
}

static void load(void) {
  void *library = NULL;
  for (int i = 0; i < RELEASES && library == NULL; i++)
    library = dlopen(releases[i].file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(problem, sizeof problem, "libnats isn't installed: apt install %s", package_here());
    return;
  }
  if (!find_all(library)) return;
  flowsystem_keep_crypto();
  sigset_t before = cnats_block_signals();
  // The library's own number of spins.
  struct sigaction pipe;
  bool is_known = sigaction(SIGPIPE, NULL, &pipe) == 0;
  natsStatus status = functions.nats_Open(-1);
  // The library ignores the signal, for the whole process and the programs that it starts.
  if (is_known) sigaction(SIGPIPE, &pipe, NULL);
  cnats_restore_signals(before);
  if (status != NATS_OK) {
    snprintf(
        problem, sizeof problem, "libnats can't be initialized: %s",
        functions.natsStatus_GetText(status));
  }
}

const char *cnats_load(void) {
  // Afterwards the library may be there.
  if (!atomic_load_explicit(&is_known, memory_order_acquire) && !flowsystem_has_descriptors())
    return "libnats can't be opened: Too many open files";
  pthread_once(&once, load);
  atomic_store_explicit(&is_known, true, memory_order_release);
  return problem[0] == '\0' ? NULL : problem;
}

const cnats_library *cnats_functions(void) { return &functions; }
