// The boundary between Swift and Lua: every piece of code that must reason about longjmp.
//
// Three rules hold everywhere in this target and in its callers:
//   1. Swift calls a Lua API function directly only if the manual gives it error class '-'.
//   2. Everything that may raise runs in a C function of this target under lua_pcall
//      (`flowlua_protect` and the operations built on it), which returns a status.
//   3. Lua calls Swift through the trampoline of this target: Swift catches everything, fills a
//      plain `flowlua_call` and returns; then C pushes the results or raises.
// So no Lua error ever jumps over a Swift frame, and C frees what it holds before it raises.
//
// Function comments carry the manual's [-pops, +pushes, errors].
#ifndef CFLOWLUA_H
#define CFLOWLUA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#ifdef __cplusplus
extern "C" {
#endif

// MARK: - Values that cross

/// The kinds of a `flowlua_value`.
enum {
  FLOWLUA_NIL = 0,
  FLOWLUA_BOOLEAN = 1,
  FLOWLUA_INTEGER = 2,
  FLOWLUA_NUMBER = 3,
  FLOWLUA_STRING = 4,     // `bytes`, `integer` of them; copied when pushed
  FLOWLUA_REFERENCE = 5,  // `reference`
  FLOWLUA_OBJECT =
      6,  // `pointer` (a +1 Swift reference that the push consumes), `reference` its type
  FLOWLUA_ARGUMENT = 7,  // `reference` is a stack index of the calling frame
  FLOWLUA_FAILURE = 8,   // `pointer` (a +1 Swift error that the push consumes)
};

/// A value on its way from Swift to Lua; plain data, no union, so that Swift reads it as it is.
typedef struct flowlua_value {
  int32_t kind;
  int32_t reference;
  int64_t integer;
  double number;
  const void *_Nullable pointer;
} flowlua_value;

typedef struct flowlua_state flowlua_state;

#define FLOWLUA_INLINE_RESULTS 6
#define FLOWLUA_INLINE_BYTES 256

/// One call from Lua into Swift; it lives on the trampoline's C stack.
typedef struct flowlua_call {
  lua_State *_Nonnull L;
  flowlua_state *_Nonnull state;
  /// The state's context.
  void *_Nonnull context;
  /// The number that the closure was made with: the Swift function to call.
  int32_t function;
  int32_t argument_count;
  int32_t result_count;
  /// Results that must be pushed in protected mode, because memory or an object has to be given
  /// back should a push fail.
  bool heavy;
  /// Why the results found no room, so that the call fails: FLOWLUA_NO_ROOM or FLOWLUA_NO_MEMORY.
  int32_t overflow;
  uint32_t inline_used;
  /// The wait of a call that returned FLOWLUA_WAIT, and of the resumption of one.
  void *_Nullable wait;
  /// More than the inline results: allocated with malloc, freed by C.
  flowlua_value *_Nullable many_results;
  flowlua_value results[FLOWLUA_INLINE_RESULTS];
  /// Room for short strings, so that returning one needs no allocation outside Lua.
  char inline_bytes[FLOWLUA_INLINE_BYTES];
} flowlua_call;

/// Where a call's inline results and bytes stand.
static inline flowlua_value *_Nonnull flowlua_call_results(flowlua_call *_Nonnull call) {
  return call->results;
}
static inline char *_Nonnull flowlua_call_bytes(flowlua_call *_Nonnull call) {
  return call->inline_bytes;
}

/// The kinds of return from a call of Swift.
enum {
  FLOWLUA_RETURN = 0,  // push the results
  FLOWLUA_RAISE = 1,   // raise result 0
  FLOWLUA_WAIT = 2,    // park the coroutine (or pump the loop) until `wait` is ready
};

/// The most bytes of a result that is pushed after Swift has returned, which needs no protected call. Lua has
/// longer strings apart, and copying such a one takes longer than the call.
enum { FLOWLUA_SHORT_TEXT = 40 };

/// A call of a method with its object or handle, at most one interned string and at most one value; see
/// `FLOWLUA_DIRECT_FUNCTION`.
typedef struct flowlua_direct_call {
  lua_State *_Nonnull L;
  flowlua_state *_Nonnull state;
  /// The state's context.
  void *_Nonnull context;
  int32_t function;
  /// The Swift object, which the userdata holds, with its type; or, with type 0, a handle. An object has
  /// the generation 0.
  int32_t type;
  void *_Nonnull object;
  uint64_t generation;
  uint32_t slot;
  bool has_value;
  /// The key of the interned string.
  int64_t key;
  /// The last argument: a scalar, a string whose bytes are lent or, as FLOWLUA_ARGUMENT, a function.
  /// Afterwards the result: a scalar, an object, or a string. That is in `text` if there is a pointer, else on
  /// top of the stack.
  flowlua_value value;
  char text[FLOWLUA_SHORT_TEXT];
} flowlua_direct_call;

/// How Swift is called. All are called on the owner thread and must not raise.
typedef struct flowlua_callbacks {
  int32_t (*_Nonnull call)(flowlua_call *_Nonnull);
  /// Returns how many results it has, 0 or the one in `value`; -1 to be called again by `call`, for
  /// which it must have done nothing.
  int32_t (*_Nonnull direct_call)(flowlua_direct_call *_Nonnull);
  /// A wait is over: produce its results, its error, or wait again.
  int32_t (*_Nonnull resume_wait)(flowlua_call *_Nonnull);
  /// Run the event loop until the wait is ready, or note in the wait why that can't be.
  void (*_Nonnull pump)(flowlua_state *_Nonnull, void *_Nonnull wait);
  /// A marked object is to travel: fill `value` with what is inside, or answer false when it can't
  /// travel. A string has bytes of malloc's and `reference` 1; a reference lives on until the value is
  /// written.
  bool (*_Nonnull unwrap)(
      flowlua_state *_Nonnull, void *_Nonnull object, flowlua_value *_Nonnull value);
  /// The other way round: turn the value into a FLOWLUA_OBJECT, or answer false. A string's bytes are
  /// lent; a reference, whose type is in `integer`, is given.
  bool (*_Nonnull wrap)(flowlua_state *_Nonnull, flowlua_value *_Nonnull value);
  /// A form of code has an object in it: fill `value` with what is to be compared, 1; 0 when its type is
  /// all, -1 to fail.
  int32_t (*_Nonnull describe_object)(
      flowlua_state *_Nonnull, void *_Nonnull object, flowlua_value *_Nonnull value);
  /// A form of code names a module: how its content counts, and its digest. Without a place for a digest:
  /// FLOWLUA_MODULE_NAMED for a library, anything else for another module.
  int32_t (*_Nonnull describe_module)(
      flowlua_state *_Nonnull, const char *_Nonnull name, size_t count, uint8_t *_Nullable digest);
  /// Give back one Swift reference.
  void (*_Nonnull release)(void *_Nonnull object);
  /// The process has been asked to end while Lua code runs: called between two instructions of it.
  void (*_Nonnull terminate)(flowlua_state *_Nonnull);
  /// A script calls os.exit: called before it has any effect.
  void (*_Nonnull leave)(flowlua_state *_Nonnull);
  /// An interruption is about to be raised: called as above. false when the code that runs is a cleanup,
  /// in which nothing is raised: the request stays.
  bool (*_Nonnull interrupt)(flowlua_state *_Nonnull);
  /// The bytes outside of the state that count into its limit: exactly if they are more than `room`, else
  /// perhaps fewer. It may not use the state.
  size_t (*_Nonnull outside)(flowlua_state *_Nonnull, size_t room);
  /// Called as above while Lua code runs, when another thread wants the owner to look at its messages.
  void (*_Nonnull attend)(flowlua_state *_Nonnull);
  /// A script writes to standard output or standard error, in a state with `flowlua_capture_output`. It may not
  /// use the state.
  void (*_Nonnull write)(flowlua_state *_Nonnull, const char *_Nonnull bytes, size_t count);
} flowlua_callbacks;

// MARK: - The state

/// Memory that several states share; see `flowlua_share_budget`.
typedef struct flowlua_budget flowlua_budget;

typedef struct flowlua_configuration {
  /// Bytes that the state may hold; 0 for no limit.
  size_t memory_limit;
  /// The budget that it shares; NULL for none.
  flowlua_budget *_Nullable budget;
  /// The standard libraries to open, in bits.
  uint32_t libraries;
  /// Whether scripts can load bytecode.
  bool loads_bytecode;
  /// Whether their metatables may have no `__gc`.
  bool refuses_finalizers;
  /// The collector in generational mode, as the stand-alone interpreter has it.
  bool generational;
  /// The libraries read no environment variables.
  bool ignores_environment;
  /// The effect of os.exit.
  uint8_t exits;
  /// For tests: the allocation that fails once, counted from 1; 0 for none.
  uint64_t failing_allocation;
  /// For tests: what the state is to do without, as if its self-check had failed; see below.
  uint32_t withheld;
} flowlua_configuration;

/// The standard libraries. SAFE names the part of a library that reaches nothing outside of the
/// state; the bit of the same name without it is the rest of that library.
enum {
  FLOWLUA_LIBRARY_SAFE_BASE = 1,
  FLOWLUA_LIBRARY_BASE = 2,
  FLOWLUA_LIBRARY_COROUTINE = 4,
  FLOWLUA_LIBRARY_TABLE = 8,
  FLOWLUA_LIBRARY_SAFE_STRING = 16,
  FLOWLUA_LIBRARY_STRING = 32,
  FLOWLUA_LIBRARY_MATH = 64,
  FLOWLUA_LIBRARY_UTF8 = 128,
  FLOWLUA_LIBRARY_SAFE_OS = 256,
  FLOWLUA_LIBRARY_OS = 512,
  FLOWLUA_LIBRARY_IO = 1024,
  FLOWLUA_LIBRARY_SAFE_PACKAGE = 2048,    // `require` of what the host has preloaded
  FLOWLUA_LIBRARY_LUA_MODULES = 4096,     // `package`, and modules written in Lua
  FLOWLUA_LIBRARY_NATIVE_MODULES = 8192,  // C libraries
  FLOWLUA_LIBRARY_DEBUG = 16384,
  FLOWLUA_ALL_LIBRARIES = 32767,
  FLOWLUA_LIBRARY_PROGRAMS = 32768,  // the functions of `os` and `io` that start programs
};

/// The effect of os.exit: it ends the process, or raises an error that names the host, or workers.
enum { FLOWLUA_EXITS = 0, FLOWLUA_EXIT_REFUSED = 1, FLOWLUA_EXIT_OF_WORKER = 2 };

/// Whether a state with certain libraries has a function, such as "os" and "time", or "_G" and "print". Methods of
/// files have the library "file".
bool flowlua_has_function(
    uint32_t libraries, const char *_Nonnull library, const char *_Nonnull name);

/// Mechanisms that lean on more than liblua promises, in bits. Each is checked before it is used.
enum {
  FLOWLUA_INTERPOSED_RESUME = 1,  // without it no state can be made
  FLOWLUA_TABLE_LAYOUT = 2,       // without it tables are read by the API
  FLOWLUA_FREED_OBJECTS = 4,      // without it userdata have finalizers
  FLOWLUA_FRAME_LAYOUT = 8,       // without it each call's line is found by the API
  FLOWLUA_BLOCK_POOL = 16,        // without it all memory comes from malloc
  FLOWLUA_DUMP_LAYOUT = 32,       // without it the lines of a function are a part of its code
};

/// Makes a state owned by the calling thread. NULL when memory ran out, or because of a `problem`.
flowlua_state *_Nullable flowlua_open(
    const flowlua_configuration *_Nonnull configuration,
    const flowlua_callbacks *_Nonnull callbacks, const char *_Nullable *_Nonnull problem);
/// Sets the pointer by which the callbacks find the Swift side.
void flowlua_set_context(flowlua_state *_Nonnull state, void *_Nullable context);
/// Closes the state: `__gc`s and pending `__close`s of the main coroutine run.
void flowlua_close(flowlua_state *_Nonnull state);
/// Releases what the coroutines of a closed state waited for, and of the objects that it had. A wait
/// knows the coroutine that continues after it, which may hold the state. Objects that are released then must find
/// the state closed: its values are gone.
void flowlua_drop_leftovers(flowlua_state *_Nonnull state);
/// Frees a closed state.
void flowlua_free(flowlua_state *_Nonnull state);

void *_Nullable flowlua_context(const flowlua_state *_Nonnull state);
lua_State *_Nonnull flowlua_main(const flowlua_state *_Nonnull state);
/// The coroutine that runs now, or that called the Swift code that runs now; else the main one.
lua_State *_Nonnull flowlua_running(const flowlua_state *_Nonnull state);
bool flowlua_is_owner(const flowlua_state *_Nonnull state);
/// Whether the calling thread may use the state; if so, it is made the current one.
enum { FLOWLUA_ENTERED = 0, FLOWLUA_FOREIGN_THREAD = 1, FLOWLUA_CLOSED = 2 };
int32_t flowlua_enter(flowlua_state *_Nonnull state);
/// Whether code of the state is executing, so that it can't be closed.
bool flowlua_is_busy(const flowlua_state *_Nonnull state);
bool flowlua_is_closing(const flowlua_state *_Nonnull state);
/// Bytes that the state holds now.
size_t flowlua_memory_used(const flowlua_state *_Nonnull state);
void flowlua_set_memory_limit(flowlua_state *_Nonnull state, size_t bytes);
/// How many instructions of Lua the state may execute from now on; negative for any number. When they are used up,
/// LUA_ERRMEM is raised, at each further instruction again. [-0, +0, -]
void flowlua_set_instruction_limit(flowlua_state *_Nonnull state, int64_t limit);
/// Whether it has raised that error since the limit was set.
bool flowlua_has_exceeded_instructions(const flowlua_state *_Nonnull state);
/// How many instructions are left, while they are counted. [-0, +0, -]
int64_t flowlua_instructions_left(const flowlua_state *_Nonnull state);
/// Sets that, for code that has a limit of its own. [-0, +0, -]
void flowlua_set_instructions_left(flowlua_state *_Nonnull state, int64_t count);
/// Makes a budget with one owner; NULL when memory ran out. A limit of 0 is none. All functions of budgets may
/// be called from any thread.
flowlua_budget *_Nullable flowlua_make_budget(size_t limit);
void flowlua_retain_budget(flowlua_budget *_Nonnull budget);
void flowlua_release_budget(flowlua_budget *_Nonnull budget);
void flowlua_set_budget_limit(flowlua_budget *_Nonnull budget, size_t bytes);
size_t flowlua_budget_limit(const flowlua_budget *_Nonnull budget);
/// The bytes that all states together have taken: at least what they hold.
size_t flowlua_budget_taken(const flowlua_budget *_Nonnull budget);
/// A limit of what a part of the code of a state allocates; all functions are for the owner thread of that state.
typedef struct flowlua_account flowlua_account;
/// Makes an account; NULL when memory ran out.
flowlua_account *_Nullable flowlua_make_account(size_t limit);
/// Gives it up; it mustn't be in use, and lives until its last block is freed.
void flowlua_release_account(flowlua_account *_Nonnull account);
/// From now on new blocks count in an account, and those that grow; NULL for none.
void flowlua_use_account(flowlua_state *_Nonnull state, flowlua_account *_Nullable account);
/// The bytes of its blocks.
size_t flowlua_account_used(const flowlua_account *_Nonnull account);
/// Whether a block was refused because of its limit.
bool flowlua_account_has_refused(const flowlua_account *_Nonnull account);
/// Has a state share a budget as long as it has a limit of its own: what it holds, with what is outside of it,
/// counts into both. The memory that it holds by now is taken even if that is more than is left.
void flowlua_share_budget(flowlua_state *_Nonnull state, flowlua_budget *_Nonnull budget);
/// Whether the state should collect and then settle, because others need the room, or may: it has taken much
/// more from its budget than after the last time or, in a state without work, than after the last time that it
/// had none.
bool flowlua_needs_settling(const flowlua_state *_Nonnull state, bool is_idle);
/// Returns the room to the budget that the state doesn't use. `collected` says that it has just collected.
void flowlua_settle(flowlua_state *_Nonnull state, bool is_idle, bool collected);
/// Whether the state and what counts into its limit are beyond it.
bool flowlua_exceeds_memory(flowlua_state *_Nonnull state);
/// Called when the host stops code: a state that has hardly any memory left gets a bit more than its limit until
/// it has less again.
void flowlua_begin_stop(flowlua_state *_Nonnull state);
/// Has code that runs in an operation raise the error of lack of memory soon, unless a collection helps:
/// what has grown outside of the state is beyond the limit.
void flowlua_note_outside(flowlua_state *_Nonnull state);
/// Whether what is outside of the state has taken half of the room that was left after the last collection
/// by `flowlua_collect`. The collector's own rounds don't count: they leave what has died meanwhile.
bool flowlua_needs_collection(flowlua_state *_Nonnull state);
/// For tests: the n-th allocation from now fails, also when Lua repeats it after a collection;
/// 0 for none. Returns how far the count before had got, 0 if its failure has come.
uint64_t flowlua_fail_allocation(flowlua_state *_Nonnull state, uint64_t n);
/// As realloc, but returns NULL without memory also in a program where realloc ends the process then.
void *_Nullable flowlua_resize_own(void *_Nullable block, size_t size);
/// For tests: the n-th request for memory outside of Lua, from now and on this thread, fails; 0 for none.
/// Returns how far the count before had got, 0 if its failure has come.
uint64_t flowlua_fail_own_allocation(uint64_t n) __attribute__((swift_attr("@discardableResult")));
/// Makes this state the one that signals on this thread look at; returns the one before.
flowlua_state *_Nullable flowlua_make_current(flowlua_state *_Nullable state)
    __attribute__((swift_attr("@discardableResult")));

// MARK: - Protected operations
//
// Each returns a status of lua_pcall. On success the results stand on top of the running
// coroutine's stack; on failure the error value does (and nothing else).

/// Runs `body` under lua_pcall on the running coroutine. [-0, +n or 1, -]
int32_t flowlua_protect(
    flowlua_state *_Nonnull state, int (*_Nonnull body)(lua_State *_Nonnull, void *_Nullable),
    void *_Nullable argument);
/// Returned instead of a status of Lua, with nothing on the stack, when there is no room for a call:
/// the stack has its full size, or there is no memory for a larger one.
enum { FLOWLUA_NO_ROOM = -1, FLOWLUA_NO_MEMORY = -2 };
/// Sees to room for `count` more values: LUA_OK or one of the two above. [-0, +0, -]
int32_t flowlua_make_room(flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t count);
/// Drops the error value that a failed operation has left.
void flowlua_discard_error(flowlua_state *_Nonnull state, int32_t status);
/// Takes n values from the top of the running coroutine's stack. [-n, +0, -]
void flowlua_pop(lua_State *_Nonnull L, int32_t n);

/// A chunk as a function. [-0, +1, -]
int32_t flowlua_load(
    flowlua_state *_Nonnull state, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name, const char *_Nullable mode);
/// Loads a chunk of the host's own, without lines: messages name the code that calls it.
/// [-0, +1, -]
int32_t flowlua_load_own(
    flowlua_state *_Nonnull state, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name);
/// A file as a function; a NULL path is stdin. [-0, +1, -]
int32_t flowlua_load_file(
    flowlua_state *_Nonnull state, const char *_Nullable path, const char *_Nullable mode);
/// The column after the piece of a text, or of a file, that a parser didn't expect: how far it has read in the last line. 0
/// if there is no such error. [-0, +0, -]
int32_t flowlua_column_read(
    flowlua_state *_Nonnull state, const void *_Nonnull bytes, size_t count,
    const char *_Nullable path);
/// Calls a function. With `traceback`, a string error gets one, as the stand-alone interpreter
/// does it. The results stand on the stack; `result_count` says how many. [-0, +results|1, -]
int32_t flowlua_call_function(
    flowlua_state *_Nonnull state, int32_t function, const flowlua_value *_Nullable arguments,
    int32_t count, bool traceback, int32_t *_Nonnull result_count);
/// Begins a call in parts: pushes the function; the caller pushes the arguments one by one. [-0, +1, -]
int32_t flowlua_begin_call(flowlua_state *_Nonnull state, int32_t function);
/// Calls the function with all that stands on top of it; `before` values stand below it.
/// [-?, +results|1, -]
int32_t flowlua_finish_call(
    flowlua_state *_Nonnull state, int32_t before, int32_t *_Nonnull result_count);
/// A coroutine with a function as its body. [-0, +1, -]
int32_t flowlua_make_thread(flowlua_state *_Nonnull state, int32_t function);
/// Resumes a coroutine of the script's own, as coroutine.resume; its waits are in place. The values that it has
/// yielded or returned are on the stack. [-0, +results|1, -]
int32_t flowlua_resume_thread(
    flowlua_state *_Nonnull state, int32_t thread, const flowlua_value *_Nullable arguments,
    int32_t count, bool *_Nonnull has_yielded, int32_t *_Nonnull result_count);
enum {
  FLOWLUA_THREAD_SUSPENDED,
  FLOWLUA_THREAD_RUNNING,
  FLOWLUA_THREAD_NORMAL,
  FLOWLUA_THREAD_DEAD,
};
/// As coroutine.status. [-0, +0, -]
int32_t flowlua_thread_status(flowlua_state *_Nonnull state, int32_t thread);
/// As coroutine.close; what a cleanup raises is the error. [-0, +0|1, -]
int32_t flowlua_close_thread(flowlua_state *_Nonnull state, int32_t thread);
/// Calls a script of the stand-alone interpreter: its arguments are those that the global table
/// `arg` holds, its results are dropped. [-0, +0|1, -]
int32_t flowlua_call_script(flowlua_state *_Nonnull state, int32_t function);
/// Calls what a global variable holds. [-0, +results|1, -]
int32_t flowlua_call_global(
    flowlua_state *_Nonnull state, const char *_Nonnull name,
    const flowlua_value *_Nullable arguments, int32_t count, bool traceback,
    int32_t *_Nonnull result_count);
/// Sets a global variable, with metamethods. [-0, +0|1, -]
int32_t flowlua_assign_global(
    flowlua_state *_Nonnull state, const char *_Nonnull name, const flowlua_value *_Nonnull value);
/// Reads a global variable, with metamethods. [-0, +1, -]
int32_t flowlua_read_global(flowlua_state *_Nonnull state, const char *_Nonnull name);

/// Calls around the output of scripts to the terminal; on any thread that runs one.
typedef struct flowlua_output_guard {
  /// Called before it.
  void (*_Nonnull hide)(void);
  /// Called with whether the terminal's line is at its end then.
  void (*_Nonnull wrote)(bool ends_line);
  /// Whether stdout is a terminal; stderr is.
  bool includes_stdout;
} flowlua_output_guard;
/// Guards the standard functions that use the terminal, before any script has got hold of them; every
/// state of the process has to have the same guard. [-0, +0|1, -]
int32_t flowlua_guard_output(flowlua_state *_Nonnull state, flowlua_output_guard with);
/// Adapts the standard libraries to a sandbox that the process has entered: io.popen reports that it can't start
/// programs, if so, and temporary files are made in a folder, if one is given. [-0, +0|1, -]
int32_t flowlua_confine(
    flowlua_state *_Nonnull state, bool denies_programs, const char *_Nullable folder);
/// Gives `write` what scripts write to standard output and standard error, warnings included. Called once,
/// before any script has got hold of the functions; not together with a guard. [-0, +0|1, -]
int32_t flowlua_capture_output(flowlua_state *_Nonnull state);
/// Says which metatable errors of the host have: they pass the traceback handler as they are.
void flowlua_set_error_metatable(flowlua_state *_Nonnull state, int32_t metatable);
/// Says which metatable settings have: they travel, and don't count in forms of code.
void flowlua_set_setting_metatable(flowlua_state *_Nonnull state, int32_t metatable);
/// A new table with `count` values from 1 on, then `pairs` keys and values. [-0, +1, -]
int32_t flowlua_make_table(
    flowlua_state *_Nonnull state, const flowlua_value *_Nullable values, int32_t count,
    const flowlua_value *_Nullable keyed, int32_t pairs, int32_t metatable);
/// An empty list with room for `capacity` values. [-0, +1, -]
int32_t flowlua_make_list(flowlua_state *_Nonnull state, int32_t capacity);
/// Reads the scalar or string at an index of a table, without metamethods; false for anything else. The bytes of
/// a string are lent until the state is used again. [-0, +0, -]
bool flowlua_read_element(
    flowlua_state *_Nonnull state, int32_t table, int64_t index, flowlua_value *_Nonnull value);
/// Sets the values of a list from index `first` on, without metamethods. [-0, +0|1, -]
int32_t flowlua_set_elements(
    flowlua_state *_Nonnull state, int32_t table, int64_t first,
    const flowlua_value *_Nonnull values, int32_t count);
/// Sets fields of a table without metamethods. [-0, +0|1, -]
int32_t flowlua_set_fields(
    flowlua_state *_Nonnull state, int32_t table, const flowlua_value *_Nonnull keyed,
    int32_t pairs);
/// Reads a field, with metamethods. [-0, +1, -]
int32_t flowlua_get_field(
    flowlua_state *_Nonnull state, int32_t table, const flowlua_value *_Nonnull key);
/// Pushes one value. [-0, +1, -]
int32_t flowlua_push_protected(flowlua_state *_Nonnull state, const flowlua_value *_Nonnull value);
/// `tostring` of a value, its `__tostring` included. [-0, +1, -]
int32_t flowlua_tostring(flowlua_state *_Nonnull state, const flowlua_value *_Nonnull value);
/// As flowlua_tostring, for the host: it takes a second at most, and then fails. [-0, +1, -]
int32_t flowlua_text(flowlua_state *_Nonnull state, const flowlua_value *_Nonnull value);
/// Whether the wait that begins now is one of such a text; asked once for each.
bool flowlua_take_text_wait(flowlua_state *_Nonnull state);
/// Says whether no such text may wait, until one has ended by itself: a signal has ended the wait of one.
void flowlua_refuse_text_waits(flowlua_state *_Nonnull state, bool refuses);
bool flowlua_refuses_text_waits(const flowlua_state *_Nonnull state);
/// Appends a value as a log line shows it: tables as {1, 2, a = 3} with sorted keys and without
/// metamethods but `__tostring` and `__name`, at most `limit` characters. [-0, +1, -]
int32_t flowlua_render(
    flowlua_state *_Nonnull state, const flowlua_value *_Nonnull value, int32_t limit);
/// The stack of a coroutine as text. [-0, +1, -]
int32_t flowlua_traceback(
    flowlua_state *_Nonnull state, lua_State *_Nonnull coroutine, const char *_Nullable message,
    int32_t level);
/// Calls `each` for every pair of a table, key at -2 and value at -1 of the given state; `each`
/// must leave the stack as it is, must not raise, and ends the walk with false. Of a view they are those
/// of the table it shows. [-0, +0|1, -]
int32_t flowlua_each_pair(
    flowlua_state *_Nonnull state, int32_t table,
    bool (*_Nonnull each)(lua_State *_Nonnull, void *_Nullable), void *_Nullable argument);
/// Calls `each` for some fields of a table, without metamethods, as flowlua_each_pair does: the value is at -1.
/// `names` has `length` bytes, in which names are separated by NUL, and then a NUL. [-0, +0|1, -]
int32_t flowlua_each_field(
    flowlua_state *_Nonnull state, int32_t table, const char *_Nonnull names, size_t length,
    bool (*_Nonnull each)(lua_State *_Nonnull, void *_Nullable), void *_Nullable argument);
/// A metatable for views; `refuse` is the function that is called when one is to be changed. `read` and
/// `read_all` are called with a source that isn't a table, `read` also with a string: it returns the value
/// under that, and whether to call `read_all` now, which returns a table. [-0, +1, -]
int32_t flowlua_make_view_metatable(
    flowlua_state *_Nonnull state, int32_t refuse, int32_t read, int32_t read_all);
/// A table that shows another one, as long as that isn't changed, or what the functions of the metatable
/// read from a userdata. It refuses to be changed itself. [-0, +1, -]
int32_t flowlua_make_view(flowlua_state *_Nonnull state, int32_t source, int32_t metatable);
/// Pushes the table that a view shows; any other table itself. [-0, +1, -]
int32_t flowlua_push_shown(flowlua_state *_Nonnull state, int32_t table);
/// A copy of a table without metatable, in which such tables are copies too; others stay as they are.
/// `memo` is a table of the copies that were made so far, by their originals. [-0, +1, -]
int32_t flowlua_copy_table(flowlua_state *_Nonnull state, int32_t table, int32_t memo);
/// A function that calls Swift function number `function`. [-0, +1, -]
int32_t flowlua_make_function(flowlua_state *_Nonnull state, int32_t function);

/// How a function calls Swift.
enum {
  FLOWLUA_GENERAL_FUNCTION,
  /// It is mostly called with its object or handle and at most one scalar, string or function: such calls
  /// are `direct_call`s.
  FLOWLUA_DIRECT_FUNCTION,
  /// It is mostly called with an interned string before that value, too.
  FLOWLUA_KEYED_FUNCTION,
};

/// A function to put into a table: its number in Swift, and how many bytes its name has.
typedef struct flowlua_named_function {
  int32_t number;
  int32_t name_length;
  int32_t kind;
} flowlua_named_function;

/// Makes a table of functions, whose names follow each other in `names`: in one protected call, as
/// there are many. [-0, +1, -]
int32_t flowlua_make_functions(
    flowlua_state *_Nonnull state, const char *_Nonnull names,
    const flowlua_named_function *_Nonnull functions, int32_t count);
/// Sets functions in a table. [-0, +0|1, -]
int32_t flowlua_set_functions(
    flowlua_state *_Nonnull state, int32_t table, const char *_Nonnull names,
    const flowlua_named_function *_Nonnull functions, int32_t count);
/// Makes a metatable of objects, hidden from scripts. A field is looked up in the table `methods`,
/// then by Swift function number `getter` (called with object and key; none: negative). [-0, +1, -]
int32_t flowlua_make_metatable(
    flowlua_state *_Nonnull state, const char *_Nonnull name, int32_t methods, int32_t getter);
/// package.preload[name] = function, for each of the names, which follow each other with their ends.
/// [-0, +0|1, -]
int32_t flowlua_preload(
    flowlua_state *_Nonnull state, const char *_Nonnull names, int32_t count, int32_t function);
/// A full collection. [-0, +0|1, -]
int32_t flowlua_collect(flowlua_state *_Nonnull state);

// MARK: - References

/// Keeps the value on top of L's stack; takes it from there. 0 when memory ran out (the value is
/// taken all the same). [-1, +0, -]
int32_t flowlua_reference(flowlua_state *_Nonnull state, lua_State *_Nonnull L);
/// Keeps the function at an index, which isn't taken: what many hold takes one reference, with an owner
/// more each time. The caller has seen to room for one value. 0 when memory ran out. [-0, +0, -]
int32_t flowlua_share(flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index);
/// Releases a reference. [-0, +0, -]
void flowlua_unreference(flowlua_state *_Nonnull state, int32_t reference);
/// Pushes what a reference keeps. The caller has seen to the room. [-0, +1, -]
void flowlua_push_reference(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t reference);
/// Makes the userdata for the next Swift error; false when memory ran out.
bool flowlua_refill_spare(flowlua_state *_Nonnull state);
/// How many references are held.
int32_t flowlua_reference_count(const flowlua_state *_Nonnull state);

// MARK: - The chunks of a session

/// The table that keeps the local variables of a session's chunks. [-0, +1, -]
int32_t flowlua_make_session_scope(flowlua_state *_Nonnull state);
/// A chunk as a function whose free names are the variables of earlier chunks. The text declares those
/// that it uses: `levels` functions, each returned by the one that encloses it, of which the innermost, whose
/// first line is 1, is the chunk. Each of its own variables it hands to the function that it knows as
/// `keeper`: `keeper("name", function() return name end, "const")`. [-0, +1, -]
int32_t flowlua_load_session_chunk(
    flowlua_state *_Nonnull state, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name, int32_t scope, int32_t levels, const char *_Nonnull keeper);
/// The value of a variable, nil when there is none. [-0, +1, -]
int32_t flowlua_push_session_local(
    flowlua_state *_Nonnull state, int32_t scope, const char *_Nonnull name);
/// Calls a chunk without arguments. On failure the error value stands on top as it was raised, and
/// the traceback (a string or nil) below it when `result_count` is 1. [-0, +results|2|1, -]
int32_t flowlua_call_session_chunk(
    flowlua_state *_Nonnull state, int32_t function, int32_t *_Nonnull result_count);

// MARK: - Objects: Swift references in userdata

/// A kind of object: its metatable and a number that only this state's objects of this kind carry.
/// 0 when memory ran out.
int32_t flowlua_define_type(flowlua_state *_Nonnull state, int32_t metatable);
/// The Swift object in the userdata at an index, if it is one of this kind and not yet released.
/// It looks at the userdata's own content, not at its metatable, which a script can change. [-0, +0, -]
void *_Nullable flowlua_object(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, int32_t type);
/// The Swift reference in an object of any type, and the type; NULL for anything else. [-0, +0, -]
void *_Nullable flowlua_any_object(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, int32_t *_Nonnull type);
/// Pushes a handle: a userdata that carries two numbers and holds nothing. The caller has seen to
/// the room. false when memory ran out. [-0, +0|1, -]
bool flowlua_push_handle(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, uint32_t slot, uint64_t generation);
/// Reads a handle. [-0, +0, -]
bool flowlua_handle(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, int32_t type,
    uint32_t *_Nonnull slot, uint64_t *_Nonnull generation);
/// The type whose objects handles are made of in advance.
void flowlua_set_handle_type(flowlua_state *_Nonnull state, int32_t type);

/// Gives back what a value on its way to Lua still holds.
void flowlua_dispose(flowlua_state *_Nonnull state, flowlua_value *_Nonnull value);

// MARK: - Reading the stack (all [-0, +0, -])

/// The bytes of a string (not of a number); NULL when the value is none.
const char *_Nullable flowlua_bytes(lua_State *_Nonnull L, int32_t index, size_t *_Nonnull count);
/// The name of a value's type for messages: the metatable's `__name` if it is a string.
const char *_Nonnull flowlua_type_name(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, size_t *_Nonnull count);
/// `file:line: ` of the innermost Lua function at or above a level; empty when there is none.
/// Returns the length written, without the closing NUL.
int32_t flowlua_where(
    lua_State *_Nonnull L, int32_t level, char *_Nonnull buffer, int32_t capacity);

/// Where the script is that calls the running function, as a number that `flowlua_origin_text` can
/// read; 0 when no Lua function calls. [-0, +0, -]
uint64_t flowlua_origin(flowlua_state *_Nonnull state, lua_State *_Nonnull L);

/// Writes `file:line`; returns the length. [-0, +0, -]
int32_t flowlua_origin_text(
    const flowlua_state *_Nonnull state, uint64_t origin, char *_Nonnull buffer, int32_t capacity);
/// The integer kept for the string at an index, or -1. [-0, +0, -]
int64_t flowlua_interned(flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index);
/// Keeps an integer for the string at an index. [-0, +0|1, -]
int32_t flowlua_intern(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, int64_t integer);
/// The bit that stands for floats among kinds of values; `1 << LUA_T…` stands for the others, and
/// `1 << LUA_TNUMBER` for integers.
enum { FLOWLUA_FLOATS = 1 << 15 };
/// The length of a table that is a list without holes: the values 1…n and no other keys. -1 for
/// any other value. `kinds` gets the bits of all kinds of its values. [-0, +0, -]
int64_t flowlua_list_count(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, uint32_t *_Nonnull kinds);
/// LUA_COPYRIGHT, a macro that Swift can't import.
static inline const char *_Nonnull flowlua_copyright(void) { return LUA_COPYRIGHT; }
/// LUA_REGISTRYINDEX, a macro that Swift can't import.
static inline int32_t flowlua_registry_index(void) { return LUA_REGISTRYINDEX; }
/// Whether a finalizer is running.
bool flowlua_in_finalizer(lua_State *_Nonnull L);

// MARK: - Values and functions that go to another state

/// Room for `file:line: ` with Lua's longest file name.
enum { FLOWLUA_POSITION = 96 };

/// Bytes that grow; `flowlua_buffer_free` ends it.
typedef struct flowlua_buffer {
  uint8_t *_Nullable bytes;
  size_t count;
  size_t capacity;
  /// Whether a secret was written into it.
  bool has_secrets;
} flowlua_buffer;

void flowlua_buffer_free(flowlua_buffer *_Nonnull buffer);
/// Appends bytes; false when memory ran out.
bool flowlua_buffer_append(
    flowlua_buffer *_Nonnull buffer, const void *_Nullable bytes, size_t count);

/// A value that can't be encoded, and where it was met.
typedef struct flowlua_encode_error {
  /// Its basic type (LUA_TFUNCTION …), and its name in messages.
  int32_t type;
  /// Whether it is a key of the table at `path`.
  bool is_key;
  char type_name[64];
  /// From the root, or from the upvalue, to it: `[3].handle`.
  char path[224];
  /// Of code: the upvalue, and where its function was defined; empty for what is reached otherwise.
  char upvalue[64];
  char function[FLOWLUA_POSITION];
} flowlua_encode_error;

/// Returned with nothing on the stack: for a value that can't be encoded, as the error says; for bytes
/// that nobody encoded; for a function that refers to something else than before.
enum { FLOWLUA_NOT_ENCODED = -3, FLOWLUA_MALFORMED = -4, FLOWLUA_CHANGED = -5 };

/// Which type of objects travels marked, by the callbacks `unwrap` and `wrap`.
void flowlua_set_secret_type(flowlua_state *_Nonnull state, int32_t type);

/// Appends the value at an index, in the form of PlainValueCodec. Tables go without their metatables,
/// and no metamethod runs. Whatever fails leaves the buffer as it was. LUA_OK, FLOWLUA_NOT_ENCODED, or the
/// status of an error. [-0, +0|1, -]
int32_t flowlua_encode(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index,
    flowlua_buffer *_Nonnull buffer, flowlua_encode_error *_Nonnull error);
/// Pushes the `count` values that the bytes begin with and says how many bytes they took, or at which
/// one it stopped. FLOWLUA_MALFORMED with the reason in `problem` for bytes that nobody wrote.
/// [-0, +count or 1, -]
int32_t flowlua_decode(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, const uint8_t *_Nullable bytes,
    size_t size, int32_t count, size_t *_Nonnull used, const char *_Nullable *_Nonnull problem);

/// Appends a function with all it refers to. As `flowlua_encode`. [-0, +0|1, -]
int32_t flowlua_pack(
    flowlua_state *_Nonnull state, int32_t function, flowlua_buffer *_Nonnull buffer,
    flowlua_encode_error *_Nonnull error);
/// Pushes a function that `flowlua_pack` wrote. The modules it names are required. [-0, +1, -]
int32_t flowlua_unpack(
    flowlua_state *_Nonnull state, const uint8_t *_Nullable bytes, size_t size,
    const char *_Nullable *_Nonnull problem);
/// How the content of a module counts in a form of code.
enum {
  FLOWLUA_MODULE_DIGEST = 32,
  FLOWLUA_MODULE_FAILED = -1,
  FLOWLUA_MODULE_NAMED = 0,       // by its name alone, as a library of Lua
  FLOWLUA_MODULE_DIGESTED = 1,    // by its digest
  FLOWLUA_MODULE_UNREADABLE = 2,  // by its name, and that it can't be read
  FLOWLUA_MODULE_UNKNOWN = 3,     // it has no file: what is in it counts as any other value
};

/// How a part of code is reached.
enum {
  FLOWLUA_PART_ROOT = 0,       // the value itself
  FLOWLUA_PART_ARGUMENTS = 1,  // the table of arguments
  FLOWLUA_PART_LOCAL = 2,      // an upvalue, by its name
  FLOWLUA_PART_GLOBAL = 3,
  FLOWLUA_PART_FIELD = 4,    // of a table, by the step to it: `.name`, `[3]`
  FLOWLUA_PART_MODULE = 5,   // one that a function may require, by its name
  FLOWLUA_PART_CONTENT = 6,  // of the owner itself
  FLOWLUA_NO_OBJECT = -1,
};

/// A part of a form of code, followed by the bytes of its name.
typedef struct flowlua_code_part {
  uint64_t start, end;  // its bytes in the form
  int32_t kind;
  int32_t owner;  // the number of what refers to it; FLOWLUA_NO_OBJECT for none
  int32_t child;  // its own number, if it is new there; FLOWLUA_NO_OBJECT for others
  uint32_t name;  // how many bytes the name has
} flowlua_code_part;

/// Appends the form of a value, most often a function, and of a table of arguments (0 for none), for
/// comparison only: equal code has equal bytes, in each process. Nothing in it is refused. With `parts`, appends a
/// `flowlua_code_part` for each part there, until these take 256 KiB. LUA_OK or the status of an error. [-0, +0|1, -]
int32_t flowlua_code_form(
    flowlua_state *_Nonnull state, int32_t value, int32_t arguments,
    flowlua_buffer *_Nonnull buffer, flowlua_buffer *_Nullable parts);
/// Compares what a function refers to with what was packed: FLOWLUA_CHANGED with upvalue and function
/// in `change` when it differs, LUA_OK when it doesn't. [-0, +0|1, -]
int32_t flowlua_find_change(
    flowlua_state *_Nonnull state, int32_t function, const uint8_t *_Nonnull bytes, size_t size,
    flowlua_encode_error *_Nonnull change);
/// Lets functions that are unpacked find their globals in a table of their own: a copy of the globals
/// as they are now. Reading another raises unless the true globals have it, setting one raises.
/// [-0, +0|1, -]
int32_t flowlua_guard_globals(flowlua_state *_Nonnull state);

// MARK: - JSON

/// The settings of a reader.
typedef struct flowlua_json_reading {
  int32_t max_depth;
  /// null stays null as a member of an object, too; otherwise such a member is left out.
  bool keeps_null;
  /// Integers beyond 64 bits stay text; otherwise they become floats.
  bool keeps_big;
  /// Two members of one object with the same key are refused.
  bool is_strict;
} flowlua_json_reading;

/// The settings of a writer.
typedef struct flowlua_json_writing {
  int32_t max_depth;
  /// Spaces a level; 0 for one line.
  int32_t indent;
  bool is_unsorted;
  /// An empty table without a mark is an array.
  bool empty_is_array;
  /// Bytes that aren't UTF-8 become U+FFFD.
  bool replaces_invalid;
  bool is_ascii;
  /// Whether the content of secrets is written.
  bool shows_secrets;
} flowlua_json_writing;

/// The mistake in a text, or in a value.
typedef struct flowlua_json_error {
  /// `expected ',' or ']'`; of a value: what of it can't be written.
  const char *_Nullable problem;
  /// Of a value: how it can be written all the same.
  const char *_Nullable hint;
  /// Where in the text, counted from 1; columns are characters.
  size_t offset, line, column;
  bool is_at_end;
  /// Of a value: the name of its type where that is the problem, otherwise empty, and the way to it.
  char type_name[64];
  char path[224];
  bool is_path_cut;
} flowlua_json_error;

/// Pushes the value of a text, whose bytes are followed by a 0: FLOWLUA_MALFORMED with nothing on the
/// stack when it isn't JSON. Runs on the running coroutine. [-0, +0|1, -]
int32_t flowlua_json_decode(
    flowlua_state *_Nonnull state, const char *_Nonnull bytes, size_t count,
    const flowlua_json_reading *_Nonnull options, flowlua_json_error *_Nonnull error);
/// Pushes the text of the value at an index; FLOWLUA_NOT_ENCODED with nothing on the stack when there is
/// none. Says whether it has met a secret. No metamethod runs. [-0, +0|1, -]
int32_t flowlua_json_encode(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index,
    const flowlua_json_writing *_Nonnull options, flowlua_json_error *_Nonnull error,
    bool *_Nonnull has_secret);

/// Which mark a table has.
enum {
  FLOWLUA_JSON_UNMARKED = 0,  // no metatable
  FLOWLUA_JSON_ARRAY = 1,
  FLOWLUA_JSON_OBJECT = 2,
  FLOWLUA_JSON_OTHER = 3,  // another metatable
};
/// The mark of a value at an index. The caller has seen to the room for one. [-0, +0, -]
int32_t flowlua_json_mark_of(flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index);
/// Whether the value at an index is JSON's null. [-0, +0, -]
bool flowlua_is_json_null(lua_State *_Nonnull L, int32_t index);
/// Marks the table at an index. [-0, +0|1, -]
int32_t flowlua_json_mark(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t index, bool is_array);

/// No character is longer than this as JSON has it.
enum { FLOWLUA_ESCAPED = 12 };
/// Writes the characters of a string as JSON has them, without quotes, as many as `room` bytes are sure to
/// have room for: at least one when these are FLOWLUA_ESCAPED. Returns how many bytes it has written, and
/// moves `from`. It stops at bytes that aren't UTF-8, unless U+FFFD replaces them. Needs no state.
size_t flowlua_json_characters(
    char *_Nonnull to, size_t room, const char *_Nonnull *_Nonnull from, const char *_Nonnull end,
    bool is_ascii, bool replaces_invalid, bool *_Nonnull is_valid);
/// Writes a finite float, or an integer, as JSON has it, and returns the length, at most 40. Needs no
/// state.
size_t flowlua_write_float(char *_Nonnull at, double number);
size_t flowlua_write_integer(char *_Nonnull at, int64_t number);

// MARK: - CSV

/// The type of a column's fields. FLOWLUA_CSV_OPTIONAL may be added: an empty field is nil.
enum {
  FLOWLUA_CSV_STRING = 0,
  FLOWLUA_CSV_INTEGER = 1,
  FLOWLUA_CSV_NUMBER = 2,
  FLOWLUA_CSV_BOOLEAN = 3,
  FLOWLUA_CSV_OPTIONAL = 0x80,
};

/// How a row is read.
typedef struct flowlua_csv_reading {
  uint8_t separator;
  /// Whether nothing follows the bytes.
  bool is_last;
  /// How many fields a row must have; 0 for any number.
  int32_t column_count;
  /// A table of the columns' names, for rows that are records; 0 for lists.
  int32_t names;
  /// The types of the first columns.
  const uint8_t *_Nullable types;
  int32_t type_count;
} flowlua_csv_reading;

/// The results of `flowlua_csv_decode`.
enum {
  FLOWLUA_CSV_INCOMPLETE = 0,  // the row goes beyond the bytes
  FLOWLUA_CSV_ROW = 1,
  FLOWLUA_CSV_END = 2,
  FLOWLUA_CSV_PROBLEM = 3,
};

/// A row that was read.
typedef struct flowlua_csv_row {
  int32_t outcome;
  /// How many bytes were read, how many lines of them are empty ones before the row, and how many lines
  /// the row has; a row with a problem is read to its end.
  size_t used, skipped_lines, lines;
  int32_t fields;
  /// `expected '"' at the end of a field`; "fields" when there are too many or too few.
  const char *_Nullable problem;
  /// How many lines of the row end before the problem, and the character in its line, from 1.
  size_t problem_lines, problem_column;
  bool is_at_end;
} flowlua_csv_row;

/// Pushes the next row of a text, if its outcome is FLOWLUA_CSV_ROW. Runs on the running coroutine.
/// [-0, +0|1, -]
int32_t flowlua_csv_decode(
    flowlua_state *_Nonnull state, const char *_Nonnull bytes, size_t count,
    const flowlua_csv_reading *_Nonnull options, flowlua_csv_row *_Nonnull row);

/// How rows are written.
typedef struct flowlua_csv_writing {
  uint8_t separator;
  bool writes_header;
  bool ends_with_crlf;
} flowlua_csv_writing;

/// The value of rows that can't be written; a row or column of 0 isn't known.
typedef struct flowlua_csv_problem {
  const char *_Nullable problem;
  char type_name[64];
  int64_t row;
  int32_t column;
} flowlua_csv_problem;

/// Pushes the text of the list of rows at an index; `columns` is a reference to the list of the columns'
/// names, or 0. FLOWLUA_NOT_ENCODED with nothing on the stack when a value can't be written. No
/// metamethod runs. [-0, +0|1, -]
int32_t flowlua_csv_encode(
    flowlua_state *_Nonnull state, lua_State *_Nonnull L, int32_t rows, int32_t columns,
    const flowlua_csv_writing *_Nonnull options, flowlua_csv_problem *_Nonnull problem);

// MARK: - Coroutines of the scheduler

/// A coroutine that the host runs: the unit that can be stopped.
typedef struct flowlua_coroutine flowlua_coroutine;

/// How a coroutine left off.
enum {
  FLOWLUA_FINISHED = 0,  // results on its stack
  FLOWLUA_FAILED = 1,    // error value on its stack
  FLOWLUA_PARKED = 2,    // it waits; the wait is `flowlua_parked_wait`
  FLOWLUA_YIELDED = 3,   // the script yielded to nobody
  FLOWLUA_STOPPED = 4,   // it was busy and has been stopped; all its coroutines are closed
};

lua_State *_Nonnull flowlua_coroutine_state(const flowlua_coroutine *_Nonnull coroutine);
/// Changes whenever the coroutine is given back.
uint32_t flowlua_coroutine_generation(const flowlua_coroutine *_Nonnull coroutine);
/// Whether it waits.
bool flowlua_coroutine_is_parked(const flowlua_coroutine *_Nonnull coroutine);
/// Lets a parked coroutine keep its wait (a +1 Swift reference) until it continues.
void flowlua_coroutine_keep_wait(flowlua_coroutine *_Nonnull coroutine, void *_Nonnull wait);
/// Starts (function and arguments stand on its stack) or resumes it (count 0).
int32_t flowlua_coroutine_run(
    flowlua_state *_Nonnull state, flowlua_coroutine *_Nonnull coroutine, int32_t count,
    int32_t *_Nonnull result_count);
/// Of a failed coroutine: where its error was raised, with the stack there; NULL when it isn't known.
const char *_Nullable flowlua_coroutine_traceback(const flowlua_coroutine *_Nonnull coroutine);
const char *_Nonnull flowlua_coroutine_position(const flowlua_coroutine *_Nonnull coroutine);
/// Of a stopped coroutine: whether it was stopped in a `__close`, whose grace was over.
bool flowlua_coroutine_has_cut_close(const flowlua_coroutine *_Nonnull coroutine);
/// Whether a parked coroutine, or one that it waits for, is in a `__close`. [-0, +0, -]
bool flowlua_coroutine_is_closing(const flowlua_coroutine *_Nonnull coroutine);
/// Of a parked coroutine: the one that waits, which it, or one that it waits for, has resumed.
lua_State *_Nonnull flowlua_coroutine_innermost(const flowlua_coroutine *_Nonnull coroutine);
/// Of a failed coroutine: Lua's status of the error.
int32_t flowlua_coroutine_error_status(const flowlua_coroutine *_Nonnull coroutine);
/// Gives it back: it is idle after a normal end, else it is closed and dropped. Refused when the
/// generation is past or the coroutine is executing.
enum { FLOWLUA_RELEASED = 0, FLOWLUA_STALE = 1, FLOWLUA_ACTIVE = 2 };
int32_t flowlua_coroutine_release(
    flowlua_state *_Nonnull state, flowlua_coroutine *_Nonnull coroutine, uint32_t generation,
    bool finished) __attribute__((swift_attr("@discardableResult")));
/// The wait that the coroutine which has just parked waits for.
void *_Nullable flowlua_parked_wait(flowlua_state *_Nonnull state);

// MARK: - Starting functions

/// Where a function gets a handle: before the bound values, or after all arguments.
enum { FLOWLUA_HANDLE_NONE = 0, FLOWLUA_HANDLE_FIRST = 1, FLOWLUA_HANDLE_LAST = 2 };

/// Which first results the caller wants: only userdata, and of any other value but nil the number of its type; any; any,
/// taken out of its mark, and known as the argument that it is. With FLOWLUA_WANTS_ALL it reads all results itself: the outcome is FLOWLUA_FINISHED.
enum {
  FLOWLUA_WANTS_USERDATA = 0,
  FLOWLUA_WANTS_VALUE = 1,
  FLOWLUA_WANTS_UNMARKED = 2,
  FLOWLUA_WANTS_ALL = 3,
};

/// The start of a function as a coroutine of the pool.
typedef struct flowlua_start {
  /// Its reference, which is given back when it is used up.
  int32_t function;
  bool is_used_up;
  /// Whether its code belongs to what executes now: what concerns that, such as `flowlua_watch_activity`,
  /// passes over its coroutine. It needs a deadline.
  bool is_call;
  uint8_t handle;
  uint8_t wanted;
  /// A table, whose first values come before the arguments.
  int32_t bound;
  int32_t bound_count;
  /// Scalars, strings and references.
  int32_t count;
  const flowlua_value *_Nullable arguments;
  /// The handle, by which `flowlua_watch_operation` finds the coroutine, also of a function that doesn't
  /// get it; generation 0 for none.
  uint32_t slot;
  uint64_t generation;
  /// As of `flowlua_watch`; deadline 0 for none.
  int64_t deadline;
  int64_t grace;
  // Afterwards.
  flowlua_coroutine *_Nullable coroutine;
  /// How many values `flowlua_prepare_function` has given to it.
  int32_t pushed;
  int32_t result_count;
  /// Of FLOWLUA_RETURNED: the first result, nil when it isn't wanted. A table is a reference, 0 when
  /// memory ran out, or FLOWLUA_ARGUMENT with the index of the argument, from 0.
  flowlua_value result;
  /// The mark that the first result was taken out of; 0 without one.
  int32_t mark;
} flowlua_start;

/// Returned for a function that has returned nothing, a scalar, a table, or what isn't wanted: the
/// coroutine is idle again.
enum { FLOWLUA_RETURNED = 5 };
/// Runs a function up to its first wait, in one call: FLOWLUA_RETURNED, another state of its `coroutine`,
/// or FLOWLUA_NO_ROOM or FLOWLUA_NO_MEMORY when it couldn't be started.
int32_t flowlua_start_function(flowlua_state *_Nonnull state, flowlua_start *_Nonnull start);
/// Makes the coroutine of a function, which `flowlua_coroutine_run` runs with the values that were given to it: LUA_OK,
/// or as above.
int32_t flowlua_prepare_function(flowlua_state *_Nonnull state, flowlua_start *_Nonnull start);

/// A function that puts its first argument into a userdata with a mark, which isn't 0. Protected.
/// [-0, +1, -]
int32_t flowlua_make_marker(flowlua_state *_Nonnull state, int32_t mark, int32_t metatable);
/// Takes a marked value on top of the stack out of its mark; 0 for anything else. The caller has seen
/// to the room for one more. [-1, +1, -]
int32_t flowlua_unmark(flowlua_state *_Nonnull state, lua_State *_Nonnull L);
/// Writes `file:line: ` of where a function was defined; nothing for one of C. Returns the length.
int32_t flowlua_where_defined(
    flowlua_state *_Nonnull state, int32_t function, char *_Nonnull buffer, int32_t capacity);

// MARK: - Stopping a busy coroutine

/// Watches the coroutine of the operation with this handle, which has been started and not returned.
bool flowlua_watch_operation(
    flowlua_state *_Nonnull state, uint32_t slot, uint64_t generation, int64_t deadline,
    int64_t grace);
/// Has a watchdog thread stop the coroutine once the monotonic clock reads `deadline`
/// (nanoseconds; negative counts from now), if it is executing then or as soon as it executes again. After it has stopped, its
/// cleanups have `grace` nanoseconds. Of several deadlines the earliest counts, with its grace, until
/// `flowlua_unwatch`. false when no thread could be started.
bool flowlua_watch(
    flowlua_state *_Nonnull state, flowlua_coroutine *_Nonnull coroutine, int64_t deadline,
    int64_t grace);
void flowlua_unwatch(flowlua_coroutine *_Nonnull coroutine);
/// Like `flowlua_watch`, for the innermost coroutine that executes now and doesn't belong to a call; false
/// without one.
bool flowlua_watch_activity(flowlua_state *_Nonnull state, int64_t deadline, int64_t grace);
/// Stops all calls that execute, where no coroutine does to which they belong; false without one.
bool flowlua_stop_calls(flowlua_state *_Nonnull state);
/// The innermost coroutine that executes; NULL without one.
const flowlua_coroutine *_Nullable flowlua_activity(const flowlua_state *_Nonnull state);
/// Whether that one has been asked to stop. It stops once its code continues, for which its wait in place
/// has to end.
bool flowlua_is_activity_stopped(const flowlua_state *_Nonnull state);
/// Whether the running code belongs to a `__close`, or to a function that one has called. [-0, +0, -]
bool flowlua_state_runs_close(const flowlua_state *_Nonnull state);
/// Whether such code may continue although the innermost coroutine, or one that encloses it, is being stopped:
/// until the grace of that one is over, which begins now unless it has begun. Never where nobody watches it.
bool flowlua_spares_close(flowlua_state *_Nonnull state);
/// Says that all that runs until `flowlua_end_enclosure` belongs to the innermost coroutine that
/// executes: a stop of that one stops what runs on top of it, too. NULL when there is none to end.
flowlua_coroutine *_Nullable flowlua_begin_enclosure(flowlua_state *_Nonnull state);
/// Ends it; the cleanups of what belonged to it are over.
void flowlua_end_enclosure(flowlua_state *_Nonnull state, flowlua_coroutine *_Nonnull coroutine);
/// Whether what encloses the code that runs has been asked to stop, so that all that belongs to it has
/// to end, within its grace.
bool flowlua_is_enclosure_stopped(flowlua_state *_Nonnull state);

// MARK: - Alarms

/// A function that is called once at a time.
typedef struct flowlua_alarm flowlua_alarm;
/// Ends the watchdog's thread, if there is one: before the process enters a sandbox. Until it continues, no deadline
/// and no alarm takes effect, and no other thread may set one.
void flowlua_pause_watchdog(void);
/// Starts it again if it was paused; returns whether it is there.
bool flowlua_continue_watchdog(void);
/// Has the watchdog thread call `action` once the monotonic clock reads `time` (nanoseconds). It takes no signals, and
/// as long as the action runs it stops no code. NULL when the system gives no thread, or without memory.
flowlua_alarm *_Nullable flowlua_set_alarm(
    int64_t time, void (*_Nonnull action)(void *_Nullable), void *_Nullable context);
/// From any thread. Afterwards the action isn't called and doesn't run, unless it has called this itself.
void flowlua_cancel_alarm(flowlua_alarm *_Nonnull alarm);
/// Cancels and frees an alarm; also called by its own action.
void flowlua_free_alarm(flowlua_alarm *_Nonnull alarm);

// MARK: - Requests of signals

/// The requests of a signal: an error "interrupted!" in the coroutine that runs, the end of the
/// process, a look at what has come, or, by the watchdog, the end of the coroutines that a stopped one encloses.
enum { FLOWLUA_INTERRUPT = 1, FLOWLUA_TERMINATE = 2, FLOWLUA_ATTEND = 4, FLOWLUA_STOP = 8 };

/// Asks for something. Safe in a signal handler on the owner thread; the argument is the state, which
/// must not have been freed.
typedef void (*flowlua_request_function)(void *_Nullable state);
flowlua_request_function _Nonnull flowlua_interrupter(void);
flowlua_request_function _Nonnull flowlua_terminator(void);
/// Asks for an interruption that raises a value instead of "interrupted!", on the owner thread. The value is a
/// reference that the caller keeps until the next call, or until the state is closed.
void flowlua_interrupt_with(flowlua_state *_Nonnull state, int32_t value);
/// Whether an interruption was asked for that nobody has taken. Safe in a signal handler.
typedef bool (*flowlua_question_function)(void *_Nullable state);
flowlua_question_function _Nonnull flowlua_interruption_question(void);
/// From any thread, while the state is alive: has the code that runs call `attend` soon. It may miss
/// code that is just about to begin. false when no signal could be sent.
bool flowlua_call_attention(flowlua_state *_Nonnull state);
/// Lets the signal for it through to the calling thread, the owner.
void flowlua_take_signal(flowlua_state *_Nonnull state);
/// Whether something was asked for that nobody has taken, or one of certain things.
bool flowlua_has_requested(const flowlua_state *_Nonnull state, uint8_t what);
bool flowlua_has_request(const flowlua_state *_Nonnull state);
/// Takes requests of a kind; whether there was one.
bool flowlua_take_request(flowlua_state *_Nonnull state, uint8_t what);
/// Asks for the end of the process again as soon as no coroutine of the scheduler executes: the code
/// below them may never wait.
void flowlua_owe_termination(flowlua_state *_Nonnull state);
/// Called by `attend`: the coroutine that runs parks at a wait, which is ready, before its next instruction, if it can
/// yield there, and nothing waits for it on the stack.
void flowlua_pause(flowlua_state *_Nonnull state, void *_Nonnull wait);
/// Whether a coroutine that doesn't belong to a call is executing, below the code that runs now.
bool flowlua_runs_scheduled(const flowlua_state *_Nonnull state);

#ifdef __cplusplus
}
#endif

#endif
