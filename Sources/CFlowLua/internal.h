// What the files of this target share; nobody else includes it.
#ifndef CFLOWLUA_INTERNAL_H
#define CFLOWLUA_INTERNAL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "CFlowLua.h"

// Where the anchor coroutine, which never runs, keeps what belongs to the host.
enum {
  ANCHOR_REFERENCES = 1,  // table: reference -> value
  ANCHOR_INTERNED = 2,    // table: string -> integer
  ANCHOR_OBJECTS = 3,     // table with weak values: Swift reference -> its userdata
  ANCHOR_NAME_KEY = 4,    // the string "__name"
  ANCHOR_SPARE = 5,       // a userdata for the next Swift error, or nil once it is used
  ANCHOR_HANDLES = 6,     // from here on: handles made in advance
};

/// What a userdata of ours holds. `magic` can't be guessed and tells state and type, so it is
/// the content that identifies an object, whatever a script does to metatables.
typedef struct object_block {
  uint64_t magic;
  void *pointer;        // the Swift reference; NULL once released. Of a handle: unused
  uint64_t generation;  // of a handle
  uint32_t slot;        // of a handle
} object_block;

struct flowlua_coroutine {
  lua_State *L;
  flowlua_host *host;
  int32_t reference;
  /// Asked to stop. Written by the watchdog, read by the hook and the signal handler.
  atomic_int stop;
  // Guarded by the watchdog's lock.
  bool watched;
  int64_t deadline;
  int64_t interval;
  int64_t grace;
  flowlua_coroutine *next_watched;
  // Owner thread only.
  flowlua_coroutine *next_free;
};

struct flowlua_host {
  lua_State *main;
  lua_State *anchor;
  flowlua_callbacks callbacks;
  void *context;
  pthread_t owner;
  // Read by the signal handler on the owner thread.
  lua_State *volatile running;
  flowlua_coroutine *volatile activity;
  // The hook that a script had set where the stop hook went.
  lua_State *volatile hooked;
  volatile lua_Hook hooked_function;
  volatile int hooked_mask;
  volatile int hooked_count;
  void *parked_wait;
  bool closing;
  bool spare_used;
  // Memory.
  size_t memory_used;
  size_t memory_limit;
  uint64_t failing_allocation;
  int silent_failures;
  // References: a stack of free ones.
  int32_t *free_references;
  int32_t free_count;
  int32_t reference_capacity;
  // Types.
  uint64_t secret;
  int32_t type_count;
  int32_t type_capacity;
  int32_t *type_metatables;
  int32_t handle_type;
  int32_t handle_count;
  flowlua_coroutine *pool;
  int32_t error_metatable;
};

/// Flags of a coroutine; they share its extra space with the address of the host.
enum {
  PARKED = 1,  // it has yielded a wait of the host, which resumers pass upward
  STOPPED = 2,  // the stop hook has made it yield: whoever resumed it closes it
  EXTRA_FLAGS = 63,
};

#define EXTRA(L) (*(uintptr_t *)lua_getextraspace(L))

static inline flowlua_host *host_of(lua_State *L) {
  return (flowlua_host *)(EXTRA(L) & ~(uintptr_t)EXTRA_FLAGS);
}

static inline bool has_flag(lua_State *L, uintptr_t flag) { return (EXTRA(L) & flag) != 0; }
static inline void set_flag(lua_State *L, uintptr_t flag) { EXTRA(L) |= flag; }
static inline void clear_flag(lua_State *L, uintptr_t flag) { EXTRA(L) &= ~flag; }

/// Whether what runs now has been asked to stop.
static inline bool is_stopping(const flowlua_host *host) {
  const flowlua_coroutine *activity = host->activity;
  return activity != NULL
      && atomic_load_explicit(&activity->stop, memory_order_relaxed) != 0;
}

// host.c
flowlua_host *flowlua_current_host(void);

// values.c
void flowlua_push_plain(lua_State *L, flowlua_host *host, const flowlua_value *value);
void flowlua_push_any(lua_State *L, flowlua_host *host, flowlua_value *value);
void flowlua_dispose(flowlua_host *host, flowlua_value *value);

// coroutine.c
int flowlua_resume_tracked(
    flowlua_host *host, lua_State *co, lua_State *from, int count, int *result_count);
int flowlua_begin_wait(lua_State *L, flowlua_host *host, void *wait);
int flowlua_close_coroutine(flowlua_host *host, lua_State *co);
void flowlua_install_coroutine_library(lua_State *L);

// call.c
int flowlua_wait_continuation(lua_State *L, int status, lua_KContext wait);

// stop.c
void flowlua_arm_stop(lua_State *L);
void flowlua_install_debug_library(lua_State *L);
void flowlua_forget_host(flowlua_host *host);

#endif
