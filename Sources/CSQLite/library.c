// Opening the library: no program that keeps no run pays for it.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "CFlowSystem.h"
#include "internal.h"

struct csqlite_library csqlite_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256];
/// Whether the library was opened, or is known not to be there.
static atomic_bool is_known;

// The first version with STRICT tables.
enum { OLDEST_VERSION = 3037000 };

static bool find(void *library, const char *name, void *place) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    snprintf(problem, sizeof problem, "libsqlite3 is too old: it has no %s", name);
    return false;
  }
  // A pointer to a function: C has no conversion from one to data.
  memcpy(place, &symbol, sizeof symbol);
  return true;
}

static bool find_all(void *library) {
#define FIND(NAME) find(library, #NAME, &csqlite_library.NAME)
  return FIND(sqlite3_libversion_number) && FIND(sqlite3_open_v2) && FIND(sqlite3_close_v2)
      && FIND(sqlite3_busy_timeout) && FIND(sqlite3_extended_result_codes) && FIND(sqlite3_errmsg)
      && FIND(sqlite3_extended_errcode) && FIND(sqlite3_system_errno)
      && FIND(sqlite3_get_autocommit) && FIND(sqlite3_file_control) && FIND(sqlite3_prepare_v3)
      && FIND(sqlite3_step) && FIND(sqlite3_reset) && FIND(sqlite3_clear_bindings)
      && FIND(sqlite3_finalize) && FIND(sqlite3_bind_int64) && FIND(sqlite3_bind_double)
      && FIND(sqlite3_bind_blob64) && FIND(sqlite3_column_int64) && FIND(sqlite3_column_double)
      && FIND(sqlite3_column_type) && FIND(sqlite3_column_blob) && FIND(sqlite3_column_bytes);
#undef FIND
}

static void load(void) {
  void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(problem, sizeof problem, "libsqlite3 isn't installed: apt install libsqlite3-0");
  } else if (find_all(library) && csqlite_library.sqlite3_libversion_number() < OLDEST_VERSION) {
    snprintf(problem, sizeof problem, "libsqlite3 is too old: 3.37 or later is needed");
  }
}

const char *csqlite_load(void) {
  // Afterwards the library may be there.
  if (!atomic_load_explicit(&is_known, memory_order_acquire) && !flowsystem_has_descriptors())
    return "libsqlite3 can't be opened: Too many open files";
  pthread_once(&once, load);
  atomic_store_explicit(&is_known, true, memory_order_release);
  return problem[0] == '\0' ? NULL : problem;
}
