// Declarations that the files of this target share; nobody else includes it.
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
  ANCHOR_OBJECTS = 3,     // table with weak values: 1 + place of a Swift reference -> its userdata
  ANCHOR_NAME_KEY = 4,    // the string "__name"
  ANCHOR_SPARE = 5,       // a userdata for the next Swift error, or nil once it is used
  // Texts that are pushed onto coroutines from outside, where making a string must not fail.
  ANCHOR_STOPPED = 6,
  ANCHOR_NOT_SUSPENDED = 7,
  ANCHOR_RESERVES = 8,  // table: type -> coroutine with userdata made in advance
  ANCHOR_SENTINEL = 9,  // the metatable of sweep sentinels
  ANCHOR_HANDLES = 10,  // from here on: handles made in advance
};

/// The content of an object's userdata. `magic` can't be guessed and tells state and type, so it is
/// the content that identifies an object, whatever a script does to metatables.
typedef struct object_block {
  uint64_t magic;
  void *pointer;  // the Swift reference; NULL before it has one
  uint32_t slot;  // its place among those held
  // The allocator knows sizes only. This structure's is odd, so that only strings and userdata have blocks as large as
  // its userdata: of both, all bytes that are looked at were written.
  uint8_t unused[3];
} __attribute__((packed)) object_block;

/// The content of a handle's userdata. Its `magic` is another one than an object's of any type: a rest of it in
/// memory that was freed must not be taken for an object.
typedef struct handle_block {
  uint64_t magic;
  uint64_t generation;
  uint32_t slot;
} handle_block;

_Static_assert(sizeof(handle_block) != sizeof(object_block), "the sizes tell them apart");

/// A place for a Swift reference, or in the list of free places, or of those whose userdata are gone.
typedef struct held_object {
  void *pointer;  // NULL: free
  uint32_t next_free;
} held_object;

enum { NONE_HELD = UINT32_MAX };

/// The size of no block.
#define NO_OBJECT_SIZE SIZE_MAX

/// A kind of objects, or of handles.
typedef struct object_type {
  int32_t metatable;
  uint32_t made;  // one by one
  // Userdata with a place but without an object, on a coroutine that never runs; NULL while only few
  // objects were made.
  lua_State *reserve;
  int32_t reserve_count;
} object_type;

/// A string that `flowlua_intern` was given, by its address.
typedef struct interned_string {
  /// The address that lua_topointer gives for it.
  const void *string;
  int64_t integer;
} interned_string;

enum { MOST_SOURCES = 4096, KNOWN_ORIGINS = 4 };

/// The result of `flowlua_origin` for an instruction.
typedef struct known_origin {
  const void *instruction;
  uint64_t origin;
} known_origin;

enum {
  INTERNED_CACHE = 64,
  /// Up to this length Lua has one string for all that are equal.
  SHORT_STRING = 40,
};

/// The watchdog's record of a coroutine. Made when it is first watched, and kept. Guarded by the
/// watchdog's lock; only the owner thread writes `watched`.
typedef struct watch_record {
  flowlua_coroutine *coroutine;
  flowlua_state *state;
  struct watch_record *next;
  bool watched;
  int64_t deadline;
  int64_t interval;
  int64_t grace;
  /// Until when the cleanups of a stopped one may run; 0 before the first of them.
  int64_t grace_deadline;
  /// Whether all that runs on top of it belongs to it; see `flowlua_begin_enclosure`.
  bool encloses;
  // Owner thread only.
  /// Whether it is the coroutine of a call, whose code belongs to the caller.
  bool is_call;
  /// The coroutine that made the call; NULL where none executed.
  flowlua_coroutine *caller;
} watch_record;

/// The notes of a message handler of the error that ended a coroutine.
typedef struct failure_record {
  char *traceback;  // malloc's, or NULL
  char position[FLOWLUA_POSITION];
  bool has_cut_close;  // a `__close` of it was stopped
} failure_record;

/// There can be very many, so that all of it fits into a cache line.
struct flowlua_coroutine {
  lua_State *L;
  int32_t reference;
  /// How often it has been given back: tells a stale user from the present one.
  uint32_t generation;
  /// The handle that an operation was started with; generation 0 for other coroutines.
  uint64_t handle_generation;
  uint32_t handle_slot;
  /// Asked to stop. Written by the watchdog, read by the hook and the signal handler.
  _Atomic(uint8_t) stop;
  // Owner thread only. The structures live as long as the state, so that a stale use is recognized.
  // The notes of its message handler of the error that ends it: the stack is gone afterwards.
  uint8_t error_status;
  /// Which hook of the main coroutine it has; see hooks.c.
  uint16_t hook_version;
  /// A +1 Swift reference to what it waits for while it is parked.
  void *wait;
  failure_record *failure;  // malloc's; NULL without an error
  watch_record *watch;      // NULL while it was never watched
  flowlua_coroutine *next_free;
};

_Static_assert(sizeof(flowlua_coroutine) <= 64, "a coroutine fits into a cache line");

/// Structures are made by the block.
typedef struct coroutine_block {
  struct coroutine_block *next;
  uint32_t used;
  flowlua_coroutine coroutines[];
} coroutine_block;

enum { COROUTINES_PER_BLOCK = 63 };

static inline bool is_watched(const flowlua_coroutine *coroutine) {
  return coroutine->watch != NULL && coroutine->watch->watched;
}

typedef struct pool_page pool_page;

typedef struct counted_block counted_block;

typedef struct captured_warnings captured_warnings;

/// The largest block that a pool has.
enum { POOL_LARGEST = 1024, POOL_CLASSES = POOL_LARGEST / 16 + 1 };

/// Small blocks of a large state; see pool.c.
typedef struct small_pool {
  uintptr_t base;  // 0 without address space
  void *mapped;
  size_t used;
  size_t committed;
  bool tried;           // to reserve address space
  bool is_closing;      // all of it is given back soon
  uint32_t page_count;  // of those that have memory
  uint32_t empty_count;
  pool_page *empty;
  uint32_t bare_count;
  uint16_t *bare;                    // the numbers of pages that were used and have no memory now
  pool_page *partial[POOL_CLASSES];  // pages with a free block, by size
} small_pool;

/// The hook that a script had set where the stop hook went. Also written by the signal handler.
typedef struct saved_hook {
  lua_State *volatile L;  // NULL: free
  volatile lua_Hook function;
  volatile int mask;
  volatile int count;
} saved_hook;

enum {
  /// As many coroutines can be armed before the first of them continues, without one losing its hook.
  SAVED_HOOKS = 8,
  /// The version of a hook that the coroutine's own code has set.
  OWN_HOOK = UINT16_MAX,
};

/// Where the pool of small blocks begins, and where a state first looks whether memory is left.
enum { POOLED_FROM = 1 << 20 };

/// How far what is outside of a state grows at least between two collections because of that.
enum { OUTSIDE_STEP = 64 << 10 };

enum {
  /// How much room a state takes from its budget at a time.
  BUDGET_STEP = 64 << 10,
  /// How much more than it uses it keeps, so that it doesn't return what it takes again at once.
  BUDGET_KEPT = 8 * BUDGET_STEP,
};

enum { LAYOUT_UNKNOWN = 0, LAYOUT_EXPECTED = 1, LAYOUT_OTHER = 2 };

struct flowlua_state {
  lua_State *main;
  lua_State *anchor;
  flowlua_callbacks callbacks;
  void *context;
  pthread_t owner;
  // Read by the signal handler on the owner thread.
  lua_State *volatile running;
  // Also read by the watchdog.
  _Atomic(flowlua_coroutine *) activity;
  // The requests of signals, in bits; see hooks.c.
  _Atomic(uint8_t) requests;
  /// The error that an interruption raises: a reference, or 0 for a text.
  int32_t interruption;
  /// Whether FLOWLUA_TERMINATE is asked for again once no coroutine of the scheduler executes.
  bool owes_termination;
  saved_hook saved_hooks[SAVED_HOOKS];
  // The hook that a script has set on the main coroutine: a reference, or 0; see hooks.c.
  int32_t main_hook;
  int main_hook_mask;
  int main_hook_count;
  uint16_t hook_version;  // 0 without one
  uint16_t last_hook_version;
  lua_CFunction set_hook;  // the standard debug.sethook
  lua_Hook stop_hook;      // of the coroutines that are to stop
  // The limit of instructions; see requests.c.
  bool counts;
  bool has_exceeded_instructions;
  bool raises_by_message;
  int64_t instructions_left;  // that were granted to no coroutine
  uint16_t
      close_depth;  // how many coroutines are being closed, each by a `__close` of the one before
  /// Whether no metatable of a script may have a finalizer; see current.c.
  bool refuses_finalizers;
  void *parked_wait;
  /// The wait at which the running code is to park between two instructions; NULL for none.
  void *pause;
  bool closing;
  bool spare_used;
  bool takes_signal;
  /// How many coroutines enclose what runs, and whether that is to end.
  int32_t enclosure_count;
  bool enclosure_stopped;
  /// The coroutine that makes a text for the host, and how many were cut; see own_text.c.
  flowlua_coroutine *own_text;
  int32_t cut_texts;
  /// Whether the wait that begins is one of such a coroutine.
  bool waits_for_text;
  /// Whether no text may wait, until one has ended by itself.
  bool refuses_text_waits;
  // Memory.
  size_t memory_used;
  /// A new block comes from malloc, without another look, while less than this is used with it; see
  /// `be_watchful`.
  size_t plain_below;
  /// The sizes of blocks that aren't just freed, each as the bit of `size_bit`.
  uint64_t noted_sizes;
  /// From so many bytes on, small blocks come from the pool: a small state would only touch more pages.
  /// 0 once it pays in any case.
  size_t pooled_from;
  /// The memory that it may hold without asking; 0 for no limit. It is `own_limit` or, in a state that shares a
  /// budget, at most what the state was granted.
  size_t memory_limit;
  /// The most that it may ever hold; 0 for no limit. Only a state with one takes room from its budget.
  size_t own_limit;
  flowlua_budget *budget;  // NULL without one
  size_t granted;
  // The memory that it was granted after it last returned all that it could, and after it did so when it had no
  // work.
  size_t settled, settled_idle;
  /// The refusals of the budget until then.
  size_t seen_refusals;
  /// If it uses less than this, it returns room; 0 without a budget.
  size_t returns_below;
  /// The other memory that counted into the limit, when it was looked up last.
  size_t memory_outside;
  /// How much more than its limit the state may hold; see `flowlua_begin_stop`.
  size_t stop_room;
  // The memory outside of the state after the last `flowlua_collect`, or less.
  size_t outside_collected;
  /// Whether the code that runs is to raise the error of lack of memory.
  bool is_beyond;
  /// Beyond so many bytes a state that grows looks whether the host's reserve is left; see memory.c.
  size_t looks_from;
  // Blocks that the running code allocates count in the account; NULL for none. See account.c.
  flowlua_account *account;
  counted_block *counted;
  size_t counted_capacity;
  size_t counted_count;
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
  /// How many owners a reference has beyond the first; NULL before one is shared. The function that was
  /// asked for last has one that may be.
  uint32_t *shares;
  int32_t shared_reference;  // 0 without one
  const void *shared_function;
  /// The Swift references that userdata hold.
  held_object *held;
  uint32_t held_count;
  uint32_t held_capacity;
  uint32_t free_held;  // the first free place, or NONE_HELD
  uint32_t dead_held;  // the first place whose userdata was freed, or NONE_HELD
  /// The present sentinel; NULL without one. See objects.c.
  void *sweep_sentinel;
  /// How large a userdata with an `object_block` is for the allocator; NO_OBJECT_SIZE where it can't know.
  size_t object_size;
  /// The arguments of the allocator when the size was learnt.
  struct {
    lua_Alloc allocate;
    const void *block;
    size_t size;
    int count;
  } observed;
  // The index from an object to its place: a power of two of places or NONE_HELD.
  uint32_t *buckets;
  uint32_t bucket_mask;
  /// How many bits the mask has.
  uint32_t bucket_bits;
  interned_string interned[INTERNED_CACHE];
  // Names of the sources that `flowlua_origin` has met.
  char (*sources)[LUA_IDSIZE];
  uint32_t source_count;
  uint32_t source_capacity;
  // The function that made the last call, until it is freed, its source, counted from 1, and where in
  // it the last calls were: most come from where those before came from.
  const void *origin_function;
  uint32_t last_source;
  uint32_t next_origin;
  known_origin origins[KNOWN_ORIGINS];
  // Types.
  /// The random part of each `magic`.
  uint64_t magic_base;
  int32_t type_count;
  int32_t type_capacity;
  object_type *types;       // counted from 1
  int32_t secret_type;      // 0 without one; see flowlua_set_secret_type
  int32_t guarded_globals;  // a reference; 0 without
  int32_t library_names;    // a reference to a table; 0 before the first form of code
  // The metatables that mark objects and arrays: references, 0 before they are used, and what
  // lua_topointer gives for them.
  int32_t json_marks[2];
  const void *json_mark_identities[2];
  captured_warnings *warnings;  // NULL for Lua's own; see output.c
  uint32_t withheld;            // see flowlua_configuration
  uint8_t layout;               // whether tables are laid out as layout.c knows it
  uint8_t frames;               // the same of frames
  uint8_t dumps;                // and of dumps, as code_dump.c knows them
  int32_t handle_type;
  int32_t handle_count;
  bool has_made_handles;
  /// Coroutines ready for use, structures without a coroutine, and all structures.
  /// Those of the standard library, to be known on a stack.
  lua_CFunction pcall, xpcall;
  flowlua_coroutine *idle;
  uint32_t idle_count;
  uint32_t coroutine_count;  // of those that have one
  int32_t error_metatable;
  int32_t setting_metatable;
  flowlua_coroutine *bare;
  coroutine_block *made;
  small_pool small;
};

/// Flags of a coroutine; they share its extra space with the address of the state.
enum {
  PARKED = 1,   // it has yielded a wait of the host, which resumers pass upward
  STOPPED = 2,  // the stop hook has made it yield: its resumer closes it
  CHAINED = 4,  // it is parked because the coroutine on top of its stack is
  CLOSING = 8,  // it is being closed because it has failed or was stopped
  CUT = 16,     // the hook that counts has raised its error in it
  EXTRA_FLAGS = 63,
};

/// To be called wherever the allocator gets something to heed: a limit, a failure for a test, another way to take
/// blocks. It looks for itself when that is over.
static inline void be_watchful(flowlua_state *state) { state->plain_below = 0; }

/// Takes small blocks from the pool from now on.
static inline void pool_from_now(flowlua_state *state) {
  state->pooled_from = 0;
  be_watchful(state);
}

static inline uint64_t size_bit(size_t size) { return (uint64_t)1 << size % 64; }

/// The content of a userdata in a block of memory of `object_size`: it is at the end.
static inline object_block *object_in(const flowlua_state *state, void *memory) {
  return (object_block *)((char *)memory + state->object_size - sizeof(object_block));
}

#define EXTRA(L) (*(uintptr_t *)lua_getextraspace(L))

static inline flowlua_state *state_of(lua_State *L) {
  return (flowlua_state *)(EXTRA(L) & ~(uintptr_t)EXTRA_FLAGS);
}

/// The `magic` of handles of a type; types have 15 bits.
static inline uint64_t handle_magic(const flowlua_state *state, int32_t type) {
  return state->magic_base ^ (0x8000 | (uint64_t)type);
}

static inline bool has_flag(lua_State *L, uintptr_t flag) { return (EXTRA(L) & flag) != 0; }
static inline void set_flag(lua_State *L, uintptr_t flag) { EXTRA(L) |= flag; }
static inline void clear_flag(lua_State *L, uintptr_t flag) { EXTRA(L) &= ~flag; }

/// The state whose code runs on this thread; the signal handler and lua_resume look here.
extern _Thread_local flowlua_state *flowlua_current;

/// The innermost coroutine that executes and doesn't belong to a call; NULL without one.
static inline flowlua_coroutine *scheduled_activity(const flowlua_state *state) {
  flowlua_coroutine *each = atomic_load_explicit(&state->activity, memory_order_relaxed);
  while (each != NULL && each->watch != NULL && each->watch->is_call) each = each->watch->caller;
  return each;
}

/// Whether what runs now has been asked to stop.
static inline bool is_activity_asked_to_stop(const flowlua_state *state) {
  const flowlua_coroutine *activity = atomic_load_explicit(&state->activity, memory_order_relaxed);
  return activity != NULL && atomic_load_explicit(&activity->stop, memory_order_relaxed) != 0;
}

/// Whether what runs now, or what encloses it, has been asked to stop.
static inline bool is_asked_to_stop(const flowlua_state *state) {
  return is_activity_asked_to_stop(state)
      || (atomic_load_explicit(&state->requests, memory_order_relaxed) & FLOWLUA_STOP) != 0;
}

/// Whether the code that runs next needs the hook: a stop or something else was requested.
static inline bool is_stopping(const flowlua_state *state) {
  return is_activity_asked_to_stop(state)
      || atomic_load_explicit(&state->requests, memory_order_relaxed) != 0;
}

// The files from the lowest floor up; scripts/floors.d/CFlowLua lists them.

// memory.c
/// The functions of the C library, which return NULL without memory. In the program malloc and realloc end the process
/// then, as most that call them don't look (CFlowSystem/limits.c); the linker gives these names to them.
void *__real_malloc(size_t size);
void *__real_realloc(void *block, size_t size);
/// As calloc, aligned_alloc and strdup; all can be made to fail, as flowlua_resize_own can. The memory is freed by free.
void *flowlua_zeroed_own(size_t size);
void *flowlua_aligned_own(size_t alignment, size_t size);
char *flowlua_copy_own(const char *text);

// pool.c
void flowlua_pool_open(small_pool *pool);
/// Gives all blocks back at once.
void flowlua_pool_close(small_pool *pool);
bool flowlua_pool_has(const small_pool *pool, const void *block);
/// A block of 1 to POOL_LARGEST bytes; NULL when the pool has none.
void *flowlua_pool_take(small_pool *pool, size_t size);
void flowlua_pool_give(small_pool *pool, void *block);
/// How large a block of the pool really is.
size_t flowlua_pool_size(void *block);

// account.c
/// Whether the account in use, which there is, allows so much more, and there is memory to count it.
bool flowlua_account_allows(flowlua_state *state, size_t more);
/// Notes that a block was refused to the code with the account: by the account, or by the state's own limit.
void flowlua_note_refusal(flowlua_account *account, bool is_own);
/// Called for a block that was `before`, NULL for a new one, and has another size now.
void flowlua_count_resized(
    flowlua_state *state, const void *before, size_t held, const void *block, size_t size);
/// Called for a block that is about to be freed, while there are counted blocks.
void flowlua_uncount_block(flowlua_state *state, const void *block);

// memory.c
/// The bytes that are left.
size_t flowlua_budget_room(const flowlua_budget *budget);
/// How often a state didn't get what it needed.
size_t flowlua_budget_refusals(const flowlua_budget *budget);
/// Takes at least as many bytes as are needed; 0 if there aren't so many. From any thread, as all of these.
size_t flowlua_take_room(flowlua_budget *budget, size_t needed);
/// Takes what is left, up to so many bytes.
size_t flowlua_take_rest(flowlua_budget *budget, size_t most);
/// Takes bytes that are held already, also beyond the limit.
void flowlua_take_anyway(flowlua_budget *budget, size_t bytes);
void flowlua_give_room(flowlua_budget *budget, size_t bytes);

// memory.c
/// Whether the system still gives what a host needs.
bool flowlua_reserve_exists(void);
/// Whether a block that grows would take what is left for the host.
bool flowlua_takes_reserve(flowlua_state *state, size_t held, size_t size);
/// Called after a collection, which may have left memory to others.
void flowlua_note_collection(flowlua_state *state);
/// Called after a whole collection, which has released what garbage held outside.
void flowlua_note_outside_collected(flowlua_state *state);

// memory.c
/// Raises LUA_ERRMEM. [-0, +0, m]
void flowlua_raise_memory(lua_State *L);
/// luaL_checkstack, but lack of memory is called so. [-0, +0, v]
void flowlua_require_room(lua_State *L, int32_t count, const char *purpose);

// requests.c
/// Asks for the termination that flowlua_owe_termination has put off. [-0, +0, -]
void flowlua_repay_termination(flowlua_state *state);

// requests.c
/// Lets a coroutine execute its next instructions, as many as are left and as it gets at a time. [-0, +0, -]
void flowlua_grant_instructions(flowlua_state *state, lua_State *L);
/// Called before a coroutine is resumed, in states with a limit.
void flowlua_begin_counting(flowlua_state *state, lua_State *co);
/// Uses up instructions for what a C function does.
void flowlua_charge_instructions(flowlua_state *state, int64_t count);
/// Called for a coroutine that continues to execute, or is closed.
void flowlua_continue_counting(flowlua_state *state, lua_State *L);

// current.c
/// Refuses `__gc` in the metatables of scripts. Called when the libraries are open. [-0, +0, m]
void flowlua_refuse_finalizers(lua_State *L);
/// Takes `__gc` out of the metatable on top, where it is refused: before the host sets one that scripts can
/// reach. [-0, +0, v]
void flowlua_strip_finalizer(lua_State *L);

// requests.c
#if defined(__has_feature)
#define HAS_REST_HOOK __has_feature(thread_sanitizer)
#else
#define HAS_REST_HOOK 0
#endif
#if HAS_REST_HOOK
/// Takes the hook of a coroutine away. With the thread sanitizer it gets one at which signals are delivered.
void flowlua_clear_hook(lua_State *L);
/// Whether a coroutine has another hook than that.
bool flowlua_has_hook(lua_State *L);
/// Has the thread sanitizer deliver the signals that it holds back.
void flowlua_let_signals_in(void);
#else
static inline void flowlua_clear_hook(lua_State *L) { lua_sethook(L, NULL, 0, 0); }
static inline bool flowlua_has_hook(lua_State *L) { return lua_gethook(L) != NULL; }
static inline void flowlua_let_signals_in(void) {}
#endif

/// Has the coroutine call the stop hook at its next instruction. Safe in a signal handler.
void flowlua_arm_stop(lua_State *L);
/// Gives a coroutine the hook that the stop hook has taken the place of.
void flowlua_restore_hook(flowlua_state *state, lua_State *L);
/// Forgets the hook that a coroutine had before it was armed.
void flowlua_forget_hook(flowlua_state *state, lua_State *L);

// protect.c
int flowlua_run_protected(lua_State *L);

// objects.c
/// The block of an object, whatever its type; NULL for anything else. [-0, +0, -]
object_block *flowlua_block_at(flowlua_state *state, lua_State *L, int index);
/// A userdata for an object of a type, with a place, but not holding anything. [-0, +1, m]
object_block *flowlua_new_block(lua_State *L, flowlua_state *state, int32_t type);
/// Gives a Swift reference to a userdata of which the index knows nothing.
void flowlua_hold_apart(flowlua_state *state, object_block *block, void *pointer);
/// Pushes the userdata of a Swift object: the one it already has, so that identity holds, or one of
/// the reserve, which takes the reference over. false when there is none. [-0, +(0|1), -]
bool flowlua_push_object(lua_State *L, flowlua_state *state, flowlua_value *value);
/// Pushes an object, with a new userdata where need be. [-0, +1, m]
void flowlua_require_object(lua_State *L, flowlua_state *state, flowlua_value *value);
/// Called by the allocator when memory of the size of a userdata of ours is freed.
void flowlua_object_freed(flowlua_state *state, void *memory);
/// `__gc` of objects, in states whose allocator can't know them. [-, +0, -]
int flowlua_object_end(lua_State *L);
/// Learns the size of userdata; the metatable of sweep sentinels is for the anchor. [-0, +1, m]
void flowlua_prepare_objects(lua_State *L);
/// Gives back all Swift references, of a state that is closed.
void flowlua_release_held(flowlua_state *state);

// values.c
void flowlua_push_plain(lua_State *L, flowlua_state *state, const flowlua_value *value);
/// Pushes a value that needs no memory, or only memory taken in advance; false for any other. It clears in the
/// value what it takes over. [-0, +(0|1), -]
bool flowlua_push_light(lua_State *L, flowlua_state *state, flowlua_value *value);
void flowlua_push_any(lua_State *L, flowlua_state *state, flowlua_value *value);
/// The results of a call, wherever they are.
flowlua_value *flowlua_results_of(flowlua_call *call);
/// Argument: a call. Pushes its results that need memory. [-1, +results, v]
int flowlua_push_heavy_body(lua_State *L);
/// Reads a scalar at an index; false for anything else. [-0, +0, -]
bool flowlua_read_scalar(lua_State *L, int index, flowlua_value *value);
/// Reads a scalar of a type that the caller knows already.
bool flowlua_read_scalar_of(lua_State *L, int index, int type, flowlua_value *value);
void flowlua_make_spare(lua_State *L);

// tables.c
/// The only key of a view, at which it has its source: the table that it shows, or an object that is read key by
/// key, until all of it is wanted.
extern const char flowlua_view_key;
/// Pushes the table that the view at an index shows; false for any other value. [-0, +(0|1), e]
bool flowlua_push_viewed(lua_State *L, int32_t index);

// values.c
/// The mark of a marked value, which is its first user value; 0 for anything else. [-0, +0, -]
int32_t flowlua_mark_at(flowlua_state *state, lua_State *L, int index);

// references.c
/// Pushes the metatable that marks arrays, or objects; made when it is first needed. [-0, +1, m]
void flowlua_push_json_mark(lua_State *L, flowlua_state *state, bool is_array);

// allocator.c
/// Returns all room to the budget, and leaves it: for a state that is closed.
void flowlua_leave_budget(flowlua_state *state);
/// Lua's allocator; the context is the state.
void *flowlua_allocate(void *context, void *block, size_t old_size, size_t new_size);

// traceback.c
/// As luaL_traceback, for which this target has no other use. [-0, +1, m]
void flowlua_push_traceback(lua_State *L, lua_State *co, const char *message, int level);

// chunks.c
int flowlua_traceback_handler(lua_State *L);
int flowlua_run_call(lua_State *L);

// body.c
int flowlua_run_body(lua_State *L);
/// Pushes what a function of a coroutine is called through: it keeps errors inside until the
/// pending `__close`s have run, which may wait, and notes where they came from. The function and
/// its arguments are pushed on top; all count as arguments of `flowlua_coroutine_run`. [-0, +2, -]
void flowlua_coroutine_push_body(flowlua_coroutine *coroutine);
void flowlua_forget_failure(flowlua_coroutine *coroutine);

// stop.c
/// Sends the signal that arms the hook, where something is asked for. From any thread; the state must
/// be alive. false when that can't be.
bool flowlua_signal_owner(flowlua_state *state);
/// Says that a coroutine, which is watched and about to run, belongs to the one that executes now.
void flowlua_mark_call(flowlua_state *state, flowlua_coroutine *coroutine);
/// As `flowlua_begin_enclosure`, of a coroutine that is watched and that runs next, and its end.
void flowlua_begin_enclosure_of(flowlua_state *state, flowlua_coroutine *coroutine);
void flowlua_end_enclosure_of(flowlua_state *state, flowlua_coroutine *coroutine);
/// Whether what a coroutine has called belongs to it.
bool flowlua_encloses(const flowlua_coroutine *coroutine);
void flowlua_stop_enclosed(flowlua_state *state);
void flowlua_begin_grace(flowlua_coroutine *coroutine);
void flowlua_end_grace(flowlua_coroutine *coroutine);
void flowlua_forget_state(flowlua_state *state);

// body.c
/// Whether the running coroutine `L`, or the innermost one of the scheduler, is in a `__close`. [-0, +0, -]
bool flowlua_runs_close(lua_State *L);

// hooks.c
/// Does what signals have asked for. Called by the hook, with the running coroutine. [-0, +0, v]
void flowlua_answer_requests(lua_State *L);

// hooks.c
/// The hook of a coroutine that is to look what is asked for.
void flowlua_stop_hook(lua_State *L, lua_Debug *frame);
/// Gives a coroutine of the scheduler that doesn't run the hook of the main one. [-0, +0, -]
void flowlua_inherit_hook(flowlua_state *state, flowlua_coroutine *coroutine);
void flowlua_install_debug_library(lua_State *L);

// resume.c
typedef int (*resume_function)(lua_State *, lua_State *, int, int *);
/// liblua's lua_resume, which this target's own replaces and calls.
extern resume_function flowlua_real_resume;
/// Whether all that resumes a coroutine, liblua and C modules too, comes to this target's lua_resume.
/// The state is the current one. [-0, +0, m]
bool flowlua_resume_is_ours(lua_State *L);
int flowlua_resume_tracked(
    flowlua_state *state, lua_State *co, lua_State *from, int count, int *result_count);
/// Waits where the running coroutine can't yield.
void flowlua_wait_in_place(flowlua_state *state, void *wait);
bool flowlua_take_flag(lua_State *co, uintptr_t flag);
/// Makes a parked coroutine ready for being resumed. [-(0|1), +0, -]
void flowlua_unpark(lua_State *co);
/// Parks the running coroutine, or waits in place; `continuation` runs when the wait is over.
int flowlua_begin_wait(lua_State *L, flowlua_state *state, void *wait, lua_KFunction continuation);
int flowlua_close_coroutine(flowlua_state *state, lua_State *co);
/// Whether another coroutine may be closed now: each that a `__close` of another one closes takes stack. [-0, +0, -]
bool flowlua_can_close(const flowlua_state *state);
void flowlua_close_chain(flowlua_state *state, lua_State *co);
void flowlua_close_stopped(flowlua_state *state, lua_State *co);

// coroutine_library.c
void flowlua_install_coroutine_library(lua_State *L);

// coroutine.c
/// An idle coroutine, or a new one. NULL when memory ran out.
flowlua_coroutine *flowlua_coroutine_take(flowlua_state *state);
void flowlua_recycle(flowlua_state *state, flowlua_coroutine *coroutine);

// own_text.c
/// Replaces the value on top by its text; returns LUA_OK, or the status of the error that is there then. [-1, +1, m]
int32_t flowlua_own_text(lua_State *L);

// refusals.c
/// Whether the value at an index is the stand-in for a function that the state doesn't have.
bool flowlua_is_refused(lua_State *L, int index);
/// Replaces a function of a library, if there is that library, by one that raises an error. [-0, +0, m]
void flowlua_refuse(lua_State *L, const char *library, const char *name);
/// Sets refusals for all functions that these libraries don't have. [-0, +0, m]
void flowlua_refuse_missing(lua_State *L, uint32_t libraries);

// libraries.c
/// Opens the standard libraries of a configuration. [-0, +0, e]
void flowlua_open_libraries(lua_State *L, const flowlua_configuration *configuration);

#endif
