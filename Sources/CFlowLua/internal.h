// What the files of this target share; nobody else includes it.
#ifndef CFLOWLUA_INTERNAL_H
#define CFLOWLUA_INTERNAL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "CFlowLua.h"

// Where the anchor coroutine, which never runs, keeps what belongs to the host. It stands at the
// bottom of the main coroutine's stack, where no script can reach it. Nothing that may raise is ever
// called on it: it has no protected call to return to.
enum {
  ANCHOR_REFERENCES = 1,  // table: reference -> value
  ANCHOR_INTERNED = 2,    // table: string -> integer
  ANCHOR_OBJECTS = 3,     // table with weak values: Swift reference -> its userdata
  ANCHOR_NAME_KEY = 4,    // the string "__name"
  ANCHOR_SPARE = 5,       // a userdata for the next Swift error, or nil once it is used
  // Texts that are pushed onto coroutines from outside, where making a string must not fail.
  ANCHOR_STOPPED = 6,
  ANCHOR_NOT_SUSPENDED = 7,
  ANCHOR_HANDLES = 8,  // from here on: handles made in advance
};

/// What a userdata of ours holds. `magic` can't be guessed and tells state and type, so it is
/// the content that identifies an object, whatever a script does to metatables.
typedef struct object_block {
  uint64_t magic;
  void *pointer;        // the Swift reference; NULL once released. Of a handle: unused
  uint64_t generation;  // of a handle
  uint32_t slot;        // of a handle; of an object its place among those held
} object_block;

/// A place for a Swift reference, or in the list of free places.
typedef struct held_object {
  void *pointer;       // NULL: free
  uint32_t next_free;
} held_object;

enum { NONE_HELD = UINT32_MAX };

/// A string that `flowlua_intern` was given, by its address.
typedef struct interned_string {
  const char *bytes;
  int64_t integer;
} interned_string;

enum {
  INTERNED_CACHE = 64,
  /// Up to this length Lua has one string for all that are equal.
  SHORT_STRING = 40,
};

struct flowlua_coroutine {
  lua_State *L;
  flowlua_host *host;
  int32_t reference;
  /// How often it has been given back: tells a stale user from the present one.
  uint32_t generation;
  /// The handle that an operation was started with; generation 0 for other coroutines.
  uint64_t handle_generation;
  uint32_t handle_slot;
  /// A +1 Swift reference to what it waits for while it is parked.
  void *wait;
  /// Asked to stop. Written by the watchdog, read by the hook and the signal handler.
  atomic_int stop;
  // Guarded by the watchdog's lock.
  bool watched;
  int64_t deadline;
  int64_t interval;
  int64_t grace;
  /// Until when the cleanups of a stopped one may run; 0 before the first of them.
  int64_t grace_deadline;
  flowlua_coroutine *next_watched;
  // Owner thread only. The structures live as long as the host, so that a stale use can be told.
  flowlua_coroutine *next_free;
  flowlua_coroutine *next_made;
  // What its message handler has noted of the error that ends it: the stack is gone afterwards.
  int error_status;
  char *traceback;  // malloc's; NULL without an error
  char position[FLOWLUA_POSITION];
};

struct flowlua_host {
  lua_State *main;
  lua_State *anchor;
  flowlua_callbacks callbacks;
  void *context;
  pthread_t owner;
  // Read by the signal handler on the owner thread.
  lua_State *volatile running;
  // Also read by the watchdog.
  _Atomic(flowlua_coroutine *) activity;
  // The hook that a script had set where the stop hook went.
  lua_State *volatile hooked;
  volatile lua_Hook hooked_function;
  volatile int hooked_mask;
  volatile int hooked_count;
  void *parked_wait;
  bool closing;
  bool spare_used;
  bool takes_signal;
  // Memory.
  size_t memory_used;
  size_t memory_limit;
  uint64_t failing_allocation;
  /// The request that was made to fail, whose repetition after a collection fails as well.
  bool refused;  // an allocation has failed since the flag was cleared
  const void *failed_block;
  size_t failed_size;
  int silent_failures;
  // References: a stack of free ones.
  int32_t *free_references;
  int32_t free_count;
  int32_t reference_capacity;
  /// The Swift references that userdata hold. Lua gives up a finalizer when there is no memory for
  /// the call or the C stack is full; what it then forgets is released from here at the end.
  held_object *held;
  uint32_t held_count;
  uint32_t held_capacity;
  uint32_t free_held;  // the first free place, or NONE_HELD
  interned_string interned[INTERNED_CACHE];
  // Types.
  uint64_t secret;
  int32_t type_count;
  int32_t type_capacity;
  int32_t *type_metatables;
  int32_t handle_type;
  int32_t handle_count;
  /// Coroutines ready for use, structures without a coroutine, and all structures.
  flowlua_coroutine *pool;
  int32_t error_metatable;
  flowlua_coroutine *bare;
  flowlua_coroutine *made;
};

/// Flags of a coroutine; they share its extra space with the address of the host.
enum {
  PARKED = 1,  // it has yielded a wait of the host, which resumers pass upward
  STOPPED = 2,  // the stop hook has made it yield: whoever resumed it closes it
  CHAINED = 4,  // it is parked because the coroutine on top of its stack is
  EXTRA_FLAGS = 63,
};

#define EXTRA(L) (*(uintptr_t *)lua_getextraspace(L))

static inline flowlua_host *host_of(lua_State *L) {
  return (flowlua_host *)(EXTRA(L) & ~(uintptr_t)EXTRA_FLAGS);
}

static inline bool has_flag(lua_State *L, uintptr_t flag) { return (EXTRA(L) & flag) != 0; }
static inline void set_flag(lua_State *L, uintptr_t flag) { EXTRA(L) |= flag; }
static inline void clear_flag(lua_State *L, uintptr_t flag) { EXTRA(L) &= ~flag; }

/// The host whose code runs on this thread; the signal handler and lua_resume look here.
extern _Thread_local flowlua_host *flowlua_current;

/// Whether what runs now has been asked to stop.
static inline bool is_stopping(const flowlua_host *host) {
  const flowlua_coroutine *activity =
      atomic_load_explicit(&host->activity, memory_order_relaxed);
  return activity != NULL
      && atomic_load_explicit(&activity->stop, memory_order_relaxed) != 0;
}

// host.c
/// luaL_checkstack, but lack of memory is called so. [-0, +0, v]
void flowlua_require_room(lua_State *L, int32_t count, const char *purpose);

// values.c
void flowlua_push_plain(lua_State *L, flowlua_host *host, const flowlua_value *value);
void flowlua_push_any(lua_State *L, flowlua_host *host, flowlua_value *value);
void flowlua_make_spare(lua_State *L);
void flowlua_release_held(flowlua_host *host);

// coroutine.c
int flowlua_resume_tracked(
    flowlua_host *host, lua_State *co, lua_State *from, int count, int *result_count);
int flowlua_begin_wait(lua_State *L, flowlua_host *host, void *wait);
int flowlua_close_coroutine(flowlua_host *host, lua_State *co);
void flowlua_close_chain(flowlua_host *host, lua_State *co);
void flowlua_close_stopped(flowlua_host *host, lua_State *co);
void flowlua_install_coroutine_library(lua_State *L);
void flowlua_recycle(flowlua_host *host, flowlua_coroutine *coroutine);

// call.c
int flowlua_wait_continuation(lua_State *L, int status, lua_KContext wait);

// stop.c
void flowlua_arm_stop(lua_State *L);
void flowlua_raise_memory(lua_State *L);
void flowlua_begin_grace(flowlua_coroutine *coroutine);
void flowlua_end_grace(flowlua_coroutine *coroutine);
void flowlua_install_debug_library(lua_State *L);
void flowlua_install_exit(lua_State *L);
void flowlua_forget_host(flowlua_host *host);

#endif
