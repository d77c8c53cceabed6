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

/// What a `flowlua_value` holds.
enum {
  FLOWLUA_NIL = 0,
  FLOWLUA_BOOLEAN = 1,
  FLOWLUA_INTEGER = 2,
  FLOWLUA_NUMBER = 3,
  FLOWLUA_STRING = 4,     // `bytes`, `integer` of them; copied when pushed
  FLOWLUA_REFERENCE = 5,  // `reference`
  FLOWLUA_OBJECT = 6,     // `pointer` (a +1 Swift reference that the push consumes), `reference` its type
  FLOWLUA_ARGUMENT = 7,   // `reference` is a stack index of the calling frame
  FLOWLUA_FAILURE = 8,    // `pointer` (a +1 Swift error that the push consumes)
};

/// A value on its way from Swift to Lua; plain data, no union, so that Swift reads it as it is.
typedef struct flowlua_value {
  int32_t kind;
  int32_t reference;
  int64_t integer;
  double number;
  const void *_Nullable pointer;
} flowlua_value;

typedef struct flowlua_host flowlua_host;

#define FLOWLUA_INLINE_RESULTS 6
#define FLOWLUA_INLINE_BYTES 256

/// One call from Lua into Swift; it lives on the trampoline's C stack.
typedef struct flowlua_call {
  lua_State *_Nonnull L;
  flowlua_host *_Nonnull host;
  /// The host's context.
  void *_Nonnull context;
  /// What the closure was made with: which Swift function to call.
  int32_t function;
  int32_t argument_count;
  int32_t result_count;
  /// Results that must be pushed in protected mode, because memory or an object has to be given
  /// back should a push fail.
  bool heavy;
  /// Why the results found no room, so that the call fails: FLOWLUA_NO_ROOM or FLOWLUA_NO_MEMORY.
  int32_t overflow;
  uint32_t inline_used;
  /// The wait of a call that answered FLOWLUA_WAIT, and of the resumption of one.
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

/// What Swift answers to a call.
enum {
  FLOWLUA_RETURN = 0,  // push the results
  FLOWLUA_RAISE = 1,   // raise result 0
  FLOWLUA_WAIT = 2,    // park the coroutine (or pump the loop) until `wait` is ready
};

/// A call with a handle, an interned string and at most one scalar or string; see
/// `FLOWLUA_KEYED_FUNCTION`.
typedef struct flowlua_keyed_call {
  /// The host's context.
  void *_Nonnull context;
  int32_t function;
  /// 2, or 3 with a value.
  int32_t argument_count;
  uint64_t generation;
  uint32_t slot;
  /// What is kept for the string.
  int64_t key;
  /// The third argument, a string's bytes lent; afterwards the result, a string on top of the stack.
  flowlua_value value;
} flowlua_keyed_call;

/// A call with an object and at most one argument; see `FLOWLUA_OBJECT_FUNCTION`.
typedef struct flowlua_object_call {
  lua_State *_Nonnull L;
  flowlua_host *_Nonnull host;
  /// The host's context.
  void *_Nonnull context;
  int32_t function;
  /// 1, or 2 with a value.
  int32_t argument_count;
  /// The Swift object, which the userdata holds, and its type.
  int32_t type;
  void *_Nonnull object;
  /// The second argument: a scalar or, as FLOWLUA_ARGUMENT, a function; afterwards the result.
  flowlua_value value;
} flowlua_object_call;

/// How Swift is called. All are called on the owner thread and must not raise.
typedef struct flowlua_callbacks {
  int32_t (*_Nonnull call)(flowlua_call *_Nonnull);
  /// Answers how many results it has, 0 or the one in `value`; -1 to be called again by `call`, for
  /// which it must have done nothing.
  int32_t (*_Nonnull keyed_call)(flowlua_keyed_call *_Nonnull);
  /// The same for calls with an object; the result may also be an object.
  int32_t (*_Nonnull object_call)(flowlua_object_call *_Nonnull);
  /// A wait is over: produce its results, its error, or wait again.
  int32_t (*_Nonnull resume_wait)(flowlua_call *_Nonnull);
  /// Run the event loop until the wait is ready, or note in the wait why that can't be.
  void (*_Nonnull pump)(flowlua_host *_Nonnull, void *_Nonnull wait);
  /// A marked object is to travel: fill `value` with what is inside, or answer false when it can't
  /// travel. A string has bytes of malloc's and `reference` 1; a reference lives on until the value is
  /// written.
  bool (*_Nonnull unwrap)(
      flowlua_host *_Nonnull, void *_Nonnull object, flowlua_value *_Nonnull value);
  /// The other way round: turn the value into a FLOWLUA_OBJECT, or answer false. A string's bytes are
  /// lent; a reference, whose type is in `integer`, is given.
  bool (*_Nonnull wrap)(flowlua_host *_Nonnull, flowlua_value *_Nonnull value);
  /// Give back one Swift reference.
  void (*_Nonnull release)(void *_Nonnull object);
  /// The process has been asked to end while Lua code runs: called between two instructions of it.
  void (*_Nonnull terminate)(flowlua_host *_Nonnull);
  /// An interruption is about to be raised: called as above. false when the code that runs is a cleanup,
  /// in which nothing is raised: the request stays.
  bool (*_Nonnull interrupt)(flowlua_host *_Nonnull);
  /// Another thread wants the owner to look at what it has sent, while Lua code runs: called as above.
  void (*_Nonnull attend)(flowlua_host *_Nonnull);
} flowlua_callbacks;

// MARK: - The state

typedef struct flowlua_configuration {
  /// Bytes that the state may hold; 0 for no limit.
  size_t memory_limit;
  /// Open the standard libraries.
  bool standard_libraries;
  /// The collector in generational mode, as the stand-alone interpreter has it.
  bool generational;
  /// The libraries read no environment variables.
  bool ignores_environment;
  /// os.exit raises: the state isn't the process's own.
  bool refuses_exit;
  /// For tests: the allocation that fails once, counted from 1; 0 for none.
  uint64_t failing_allocation;
} flowlua_configuration;

/// Makes a state owned by the calling thread. NULL when memory ran out.
flowlua_host *_Nullable flowlua_open(
    const flowlua_configuration *_Nonnull configuration,
    const flowlua_callbacks *_Nonnull callbacks);
/// What the callbacks find the Swift side by.
void flowlua_set_context(flowlua_host *_Nonnull host, void *_Nullable context);
/// Closes the state: `__gc`s and pending `__close`s of the main coroutine run.
void flowlua_close(flowlua_host *_Nonnull host);
/// Lets go of what the coroutines of a closed state waited for, and of the objects that it had. A wait
/// knows who goes on after it, and that one may hold the state. What goes with it must find the state
/// closed: its values are gone.
void flowlua_drop_leftovers(flowlua_host *_Nonnull host);
/// Frees the host of a closed state.
void flowlua_free(flowlua_host *_Nonnull host);

void *_Nullable flowlua_context(const flowlua_host *_Nonnull host);
lua_State *_Nonnull flowlua_main(const flowlua_host *_Nonnull host);
/// The coroutine that runs now, or that called the Swift code that runs now; else the main one.
lua_State *_Nonnull flowlua_running(const flowlua_host *_Nonnull host);
bool flowlua_is_owner(const flowlua_host *_Nonnull host);
/// Whether the calling thread may use the state; if so, it is made the current one.
enum { FLOWLUA_ENTERED = 0, FLOWLUA_FOREIGN_THREAD = 1, FLOWLUA_CLOSED = 2 };
int32_t flowlua_enter(flowlua_host *_Nonnull host);
/// Whether code of the state is executing, so that it can't be closed.
bool flowlua_is_busy(const flowlua_host *_Nonnull host);
bool flowlua_is_closing(const flowlua_host *_Nonnull host);
/// Bytes that the state holds now.
size_t flowlua_memory_used(const flowlua_host *_Nonnull host);
void flowlua_set_memory_limit(flowlua_host *_Nonnull host, size_t bytes);
/// For tests: the n-th allocation from now fails, also when Lua repeats it after a collection;
/// 0 for none. Returns how far the count before had got, 0 if its failure has come.
uint64_t flowlua_fail_allocation(flowlua_host *_Nonnull host, uint64_t n);
/// Makes this state the one that signals on this thread look at; returns the one before.
flowlua_host *_Nullable flowlua_make_current(flowlua_host *_Nullable host)
    __attribute__((swift_attr("@discardableResult")));

/// Whether liblua's own calls of lua_resume come to this target's (they must).
bool flowlua_resume_is_interposed(void);

// MARK: - Protected operations
//
// Each answers a status of lua_pcall. On success the results stand on top of the running
// coroutine's stack; on failure the error value does (and nothing else).

/// Runs `body` under lua_pcall on the running coroutine. [-0, +n or 1, -]
int32_t flowlua_protect(
    flowlua_host *_Nonnull host, int (*_Nonnull body)(lua_State *_Nonnull, void *_Nullable),
    void *_Nullable argument);
/// Answered instead of a status of Lua, with nothing on the stack, when there is no room for a call:
/// the stack has its full size, or there is no memory for a larger one.
enum { FLOWLUA_NO_ROOM = -1, FLOWLUA_NO_MEMORY = -2 };
/// Sees to room for `count` more values: LUA_OK or one of the two above. [-0, +0, -]
int32_t flowlua_make_room(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t count);
/// Drops the error value that a failed operation has left.
void flowlua_discard_error(flowlua_host *_Nonnull host, int32_t status);
/// Takes n values from the top of the running coroutine's stack. [-n, +0, -]
void flowlua_pop(lua_State *_Nonnull L, int32_t n);

/// A chunk as a function. [-0, +1, -]
int32_t flowlua_load(
    flowlua_host *_Nonnull host, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name, const char *_Nullable mode);
/// The same of a chunk of the host's own, without lines: messages name the code that calls it.
/// [-0, +1, -]
int32_t flowlua_load_own(
    flowlua_host *_Nonnull host, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name);
/// A file as a function; a NULL path is stdin. [-0, +1, -]
int32_t flowlua_load_file(
    flowlua_host *_Nonnull host, const char *_Nullable path, const char *_Nullable mode);
/// Calls a function. With `traceback`, a string error gets one, as the stand-alone interpreter
/// does it. The results stand on the stack; `result_count` says how many. [-0, +results|1, -]
int32_t flowlua_call_function(
    flowlua_host *_Nonnull host, int32_t function, const flowlua_value *_Nullable arguments,
    int32_t count, bool traceback, int32_t *_Nonnull result_count);
/// The same for a script of the stand-alone interpreter: its arguments are those that the global table
/// `arg` holds, its results are dropped. [-0, +0|1, -]
int32_t flowlua_call_script(flowlua_host *_Nonnull host, int32_t function);
/// Calls what a global variable holds. [-0, +results|1, -]
int32_t flowlua_call_global(
    flowlua_host *_Nonnull host, const char *_Nonnull name,
    const flowlua_value *_Nullable arguments, int32_t count, bool traceback,
    int32_t *_Nonnull result_count);
/// Sets a global variable, with metamethods. [-0, +0|1, -]
int32_t flowlua_assign_global(
    flowlua_host *_Nonnull host, const char *_Nonnull name, const flowlua_value *_Nonnull value);
/// Reads a global variable, with metamethods. [-0, +1, -]
int32_t flowlua_read_global(flowlua_host *_Nonnull host, const char *_Nonnull name);

/// What is done around the output of scripts to the terminal; on any thread that runs one.
typedef struct flowlua_output_guard {
  /// Called before it.
  void (*_Nonnull hide)(void);
  /// Called with whether the terminal's line is at its end then.
  void (*_Nonnull wrote)(bool ends_line);
} flowlua_output_guard;
/// Guards the standard functions that use the terminal, before any script has got hold of them; every
/// state of the process has to have the same guard. [-0, +0|1, -]
int32_t flowlua_guard_output(flowlua_host *_Nonnull host, flowlua_output_guard with);
/// Says which metatable errors of the host have: they pass the traceback handler as they are.
void flowlua_set_error_metatable(flowlua_host *_Nonnull host, int32_t metatable);
/// A new table with `count` values from 1 on, then `pairs` keys and values. [-0, +1, -]
int32_t flowlua_make_table(
    flowlua_host *_Nonnull host, const flowlua_value *_Nullable values, int32_t count,
    const flowlua_value *_Nullable keyed, int32_t pairs, int32_t metatable);
/// An empty list with room for `capacity` values. [-0, +1, -]
int32_t flowlua_make_list(flowlua_host *_Nonnull host, int32_t capacity);
/// Sets the values of a list from index `first` on, without metamethods. [-0, +0|1, -]
int32_t flowlua_set_elements(
    flowlua_host *_Nonnull host, int32_t table, int64_t first,
    const flowlua_value *_Nonnull values, int32_t count);
/// Sets fields of a table without metamethods. [-0, +0|1, -]
int32_t flowlua_set_fields(
    flowlua_host *_Nonnull host, int32_t table, const flowlua_value *_Nonnull keyed,
    int32_t pairs);
/// Reads a field, with metamethods. [-0, +1, -]
int32_t flowlua_get_field(
    flowlua_host *_Nonnull host, int32_t table, const flowlua_value *_Nonnull key);
/// Pushes one value. [-0, +1, -]
int32_t flowlua_push_protected(flowlua_host *_Nonnull host, const flowlua_value *_Nonnull value);
/// `tostring` of a value, its `__tostring` included. [-0, +1, -]
int32_t flowlua_tostring(flowlua_host *_Nonnull host, const flowlua_value *_Nonnull value);
/// What a log line shows of a value: tables as {1, 2, a = 3} with sorted keys and without
/// metamethods but `__tostring` and `__name`, at most `limit` characters. [-0, +1, -]
int32_t flowlua_render(
    flowlua_host *_Nonnull host, const flowlua_value *_Nonnull value, int32_t limit);
/// The stack of a coroutine as text. [-0, +1, -]
int32_t flowlua_traceback(
    flowlua_host *_Nonnull host, lua_State *_Nonnull coroutine, const char *_Nullable message,
    int32_t level);
/// Calls `each` for every pair of a table, key at -2 and value at -1 of the given state; `each`
/// must leave the stack as it is, must not raise, and ends the walk with false. Of a view they are those
/// of the table it shows. [-0, +0|1, -]
int32_t flowlua_each_pair(
    flowlua_host *_Nonnull host, int32_t table,
    bool (*_Nonnull each)(lua_State *_Nonnull, void *_Nullable), void *_Nullable argument);
/// A metatable for views; `refuse` is the function that is called when one is to be changed. [-0, +1, -]
int32_t flowlua_make_view_metatable(flowlua_host *_Nonnull host, int32_t refuse);
/// A table that shows another one, as long as that isn't changed, and refuses to be changed itself.
/// [-0, +1, -]
int32_t flowlua_make_view(flowlua_host *_Nonnull host, int32_t table, int32_t metatable);
/// Pushes what the view at an index shows; false for any other value. [-0, +(0|1), -]
bool flowlua_push_viewed(lua_State *_Nonnull L, int32_t index);
/// A copy of a table without metatable, in which such tables are copies too; others stay as they are.
/// `memo` is a table of the copies that were made so far, by their originals. [-0, +1, -]
int32_t flowlua_copy_table(flowlua_host *_Nonnull host, int32_t table, int32_t memo);
/// A function that calls Swift function number `function`. [-0, +1, -]
int32_t flowlua_make_function(flowlua_host *_Nonnull host, int32_t function);

/// How a function calls Swift.
enum {
  FLOWLUA_PLAIN_FUNCTION,
  /// It is mostly called with a handle and an interned string: such calls are `keyed_call`s.
  FLOWLUA_KEYED_FUNCTION,
  /// It is mostly called with its object and at most one argument, a scalar or a function: such calls
  /// are `object_call`s.
  FLOWLUA_OBJECT_FUNCTION,
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
    flowlua_host *_Nonnull host, const char *_Nonnull names,
    const flowlua_named_function *_Nonnull functions, int32_t count);
/// Sets functions in a table. [-0, +0|1, -]
int32_t flowlua_set_functions(
    flowlua_host *_Nonnull host, int32_t table, const char *_Nonnull names,
    const flowlua_named_function *_Nonnull functions, int32_t count);
/// Makes a metatable of objects, hidden from scripts. A field is looked up in the table `methods`,
/// then by Swift function number `getter` (called with object and key; none: negative). [-0, +1, -]
int32_t flowlua_make_metatable(
    flowlua_host *_Nonnull host, const char *_Nonnull name, int32_t methods, int32_t getter);
/// package.preload[name] = function. [-0, +0|1, -]
int32_t flowlua_preload(
    flowlua_host *_Nonnull host, const char *_Nonnull name, int32_t function);
/// A full collection. [-0, +0|1, -]
int32_t flowlua_collect(flowlua_host *_Nonnull host);

// MARK: - References

/// Keeps the value on top of L's stack; takes it from there. 0 when memory ran out (the value is
/// taken all the same). [-1, +0, -]
int32_t flowlua_reference(flowlua_host *_Nonnull host, lua_State *_Nonnull L);
/// Keeps the function at an index, which isn't taken: what many hold takes one reference, with an owner
/// more each time. The caller has seen to room for one value. 0 when memory ran out. [-0, +0, -]
int32_t flowlua_share(flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index);
/// Lets go of a reference. [-0, +0, -]
void flowlua_unreference(flowlua_host *_Nonnull host, int32_t reference);
/// Pushes what a reference keeps. The caller has seen to the room. [-0, +1, -]
void flowlua_push_reference(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t reference);
/// Makes the userdata for the next Swift error; false when memory ran out.
bool flowlua_refill_spare(flowlua_host *_Nonnull host);
/// How many references are held.
int32_t flowlua_reference_count(const flowlua_host *_Nonnull host);

// MARK: - The chunks of a session

/// The table that keeps the local variables of a session's chunks. [-0, +1, -]
int32_t flowlua_make_session_scope(flowlua_host *_Nonnull host);
/// A chunk as a function whose free names are the variables of earlier chunks. The text declares those
/// that it uses: `levels` functions, each returned by the one that encloses it, of which the innermost, whose
/// first line is 1, is the chunk. Each of its own variables it hands to the function that it knows as
/// `keeper`: `keeper("name", function() return name end, "const")`. [-0, +1, -]
int32_t flowlua_load_session_chunk(
    flowlua_host *_Nonnull host, const void *_Nonnull bytes, size_t count,
    const char *_Nonnull chunk_name, int32_t scope, int32_t levels,
    const char *_Nonnull keeper);
/// The value of a variable, nil when there is none. [-0, +1, -]
int32_t flowlua_push_session_local(
    flowlua_host *_Nonnull host, int32_t scope, const char *_Nonnull name);
/// Calls a chunk without arguments. On failure the error value stands on top as it was raised, and
/// the traceback (a string or nil) below it when `result_count` is 1. [-0, +results|2|1, -]
int32_t flowlua_call_session_chunk(
    flowlua_host *_Nonnull host, int32_t function, int32_t *_Nonnull result_count);

// MARK: - Objects: Swift references in userdata

/// A kind of object: its metatable and a number that only this state's objects of this kind carry.
/// 0 when memory ran out.
int32_t flowlua_define_type(flowlua_host *_Nonnull host, int32_t metatable);
/// The Swift object in the userdata at an index, if it is one of this kind and not yet released.
/// It looks at the userdata's own content, not at its metatable, which a script can change. [-0, +0, -]
void *_Nullable flowlua_object(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index, int32_t type);
/// Pushes a handle: a userdata that carries two numbers and holds nothing. The caller has seen to
/// the room. false when memory ran out. [-0, +0|1, -]
bool flowlua_push_handle(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, uint32_t slot, uint64_t generation);
/// Reads a handle. [-0, +0, -]
bool flowlua_handle(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index, int32_t type,
    uint32_t *_Nonnull slot, uint64_t *_Nonnull generation);
/// The type whose objects handles are made of in advance.
void flowlua_set_handle_type(flowlua_host *_Nonnull host, int32_t type);

/// Gives back what a value on its way to Lua still holds.
void flowlua_dispose(flowlua_host *_Nonnull host, flowlua_value *_Nonnull value);

// MARK: - Reading the stack (all [-0, +0, -])

/// The bytes of a string (not of a number); NULL when the value is none.
const char *_Nullable flowlua_bytes(
    lua_State *_Nonnull L, int32_t index, size_t *_Nonnull count);
/// The name of a value's type for messages: the metatable's `__name` if it is a string.
const char *_Nonnull flowlua_type_name(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index, size_t *_Nonnull count);
/// `file:line: ` of the innermost Lua function at or above a level; empty when there is none.
/// Returns the length written, without the closing NUL.
int32_t flowlua_where(
    lua_State *_Nonnull L, int32_t level, char *_Nonnull buffer, int32_t capacity);

/// Where the script is that calls the running function, as a number that `flowlua_origin_text` can
/// read; 0 when no Lua function calls. [-0, +0, -]
uint64_t flowlua_origin(flowlua_host *_Nonnull host, lua_State *_Nonnull L);

/// Writes `file:line`; returns the length. [-0, +0, -]
int32_t flowlua_origin_text(
    const flowlua_host *_Nonnull host, uint64_t origin, char *_Nonnull buffer, int32_t capacity);
/// The integer kept for the string at an index, or -1. [-0, +0, -]
int64_t flowlua_interned(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index);
/// Keeps an integer for the string at an index. [-0, +0|1, -]
int32_t flowlua_intern(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index, int64_t integer);
/// The length of a table that is a list without holes: the values 1…n and no other keys. -1 for
/// any other value. [-0, +0, -]
int64_t flowlua_list_count(lua_State *_Nonnull L, int32_t index);
/// LUA_COPYRIGHT, a macro that Swift can't import.
static inline const char *_Nonnull flowlua_copyright(void) { return LUA_COPYRIGHT; }
/// LUA_REGISTRYINDEX, a macro that Swift can't import.
static inline int32_t flowlua_registry_index(void) { return LUA_REGISTRYINDEX; }
bool flowlua_is_table(lua_State *_Nonnull L, int32_t index);
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
} flowlua_buffer;

void flowlua_buffer_free(flowlua_buffer *_Nonnull buffer);
/// Appends bytes; false when memory ran out.
bool flowlua_buffer_append(
    flowlua_buffer *_Nonnull buffer, const void *_Nullable bytes, size_t count);

/// What couldn't go, and where it was met.
typedef struct flowlua_refusal {
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
} flowlua_refusal;

/// Answered when something can't go, which the refusal tells; nothing is on the stack.
enum { FLOWLUA_REFUSED = -3, FLOWLUA_MALFORMED = -4 };

/// Which type of objects travels marked, by the callbacks `unwrap` and `wrap`.
void flowlua_set_secret_type(flowlua_host *_Nonnull host, int32_t type);

/// Appends the value at an index, in the form of PlainValueCodec. Tables go without their metatables,
/// and no metamethod runs. Whatever fails leaves the buffer as it was. LUA_OK, FLOWLUA_REFUSED, or the
/// status of an error. [-0, +0|1, -]
int32_t flowlua_encode(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, int32_t index,
    flowlua_buffer *_Nonnull buffer, flowlua_refusal *_Nonnull refusal);
/// Pushes the `count` values that the bytes begin with and says how many bytes they took, or at which
/// one it stopped. FLOWLUA_MALFORMED with the reason in `problem` for bytes that nobody wrote.
/// [-0, +count or 1, -]
int32_t flowlua_decode(
    flowlua_host *_Nonnull host, lua_State *_Nonnull L, const uint8_t *_Nullable bytes, size_t size,
    int32_t count, size_t *_Nonnull used, const char *_Nullable *_Nonnull problem);

/// Appends a function with all it refers to. As `flowlua_encode`. [-0, +0|1, -]
int32_t flowlua_pack(
    flowlua_host *_Nonnull host, int32_t function, flowlua_buffer *_Nonnull buffer,
    flowlua_refusal *_Nonnull refusal);
/// Pushes a function that `flowlua_pack` wrote. The modules it names are required. [-0, +1, -]
int32_t flowlua_unpack(
    flowlua_host *_Nonnull host, const uint8_t *_Nullable bytes, size_t size,
    const char *_Nullable *_Nonnull problem);
/// Compares what a function refers to with what was packed: FLOWLUA_REFUSED with upvalue and function
/// in `change` when it differs, LUA_OK when it doesn't. [-0, +0|1, -]
int32_t flowlua_find_change(
    flowlua_host *_Nonnull host, int32_t function, const uint8_t *_Nonnull bytes, size_t size,
    flowlua_refusal *_Nonnull change);
/// Lets functions that are unpacked find their globals in a table of their own: a copy of the globals
/// as they are now. Reading another raises unless the true globals have it, setting one raises.
/// [-0, +0|1, -]
int32_t flowlua_guard_globals(flowlua_host *_Nonnull host);

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

/// A coroutine from the pool, or a new one. NULL when memory ran out.
flowlua_coroutine *_Nullable flowlua_coroutine_take(flowlua_host *_Nonnull host);
lua_State *_Nonnull flowlua_coroutine_state(const flowlua_coroutine *_Nonnull coroutine);
/// Changes whenever the coroutine is given back.
uint32_t flowlua_coroutine_generation(const flowlua_coroutine *_Nonnull coroutine);
/// Whether it waits.
bool flowlua_coroutine_is_parked(const flowlua_coroutine *_Nonnull coroutine);
/// Lets a parked coroutine keep its wait (a +1 Swift reference) until it has gone on.
void flowlua_coroutine_keep_wait(
    flowlua_coroutine *_Nonnull coroutine, void *_Nonnull wait);
/// Starts (function and arguments stand on its stack) or resumes it (count 0).
int32_t flowlua_coroutine_run(
    flowlua_host *_Nonnull host, flowlua_coroutine *_Nonnull coroutine, int32_t count,
    int32_t *_Nonnull result_count);
/// Pushes what a function of a coroutine is called through: it keeps errors inside until the
/// pending `__close`s have run, which may wait, and notes where they came from. The function and
/// its arguments go on top; all count as arguments of `flowlua_coroutine_run`. [-0, +2, -]
void flowlua_coroutine_push_body(flowlua_coroutine *_Nonnull coroutine);
/// Of a failed coroutine: where its error was raised, with the stack there; NULL when it isn't known.
const char *_Nullable flowlua_coroutine_traceback(
    const flowlua_coroutine *_Nonnull coroutine);
const char *_Nonnull flowlua_coroutine_position(
    const flowlua_coroutine *_Nonnull coroutine);
/// Of a stopped coroutine: whether it was stopped in a `__close`, whose grace was over.
bool flowlua_coroutine_has_cut_close(const flowlua_coroutine *_Nonnull coroutine);
/// Whether a parked coroutine, or one that it waits for, is in a `__close`. [-0, +0, -]
bool flowlua_coroutine_is_closing(const flowlua_coroutine *_Nonnull coroutine);
/// Of a parked coroutine: the one that waits, which it, or one that it waits for, has resumed.
lua_State *_Nonnull flowlua_coroutine_innermost(const flowlua_coroutine *_Nonnull coroutine);
/// Of a failed coroutine: Lua's status of the error.
int32_t flowlua_coroutine_error_status(const flowlua_coroutine *_Nonnull coroutine);
/// Gives it back: to the pool after a normal end, else it is closed and dropped. Refused when the
/// generation is past or the coroutine is executing.
enum { FLOWLUA_RELEASED = 0, FLOWLUA_STALE = 1, FLOWLUA_ACTIVE = 2 };
int32_t flowlua_coroutine_release(
    flowlua_host *_Nonnull host, flowlua_coroutine *_Nonnull coroutine, uint32_t generation,
    bool finished) __attribute__((swift_attr("@discardableResult")));
/// The wait that the coroutine which has just parked waits for.
void *_Nullable flowlua_parked_wait(flowlua_host *_Nonnull host);

/// Answered by `flowlua_perform` for an operation that is over and needs no look at its results.
enum { FLOWLUA_DONE = 5 };
/// Runs an operation in one call: takes a coroutine, pushes the function, a handle and the first
/// `count` values of the table `arguments`, and runs it, watched unless `deadline` is 0. When it
/// finished and its first result is no userdata, the coroutine is back in the pool at once
/// (FLOWLUA_DONE). FLOWLUA_NO_ROOM when memory ran out.
int32_t flowlua_perform(
    flowlua_host *_Nonnull host, int32_t function, uint32_t slot, uint64_t generation,
    int32_t arguments, int32_t count, int64_t deadline, int64_t grace,
    flowlua_coroutine *_Nullable *_Nonnull coroutine, int32_t *_Nonnull result_count);

// MARK: - Callbacks

/// Runs a function in a coroutine of the pool, in one call: with `count` arguments and, if it is to
/// get one, a handle behind them, watched unless `deadline` is 0. When it finished and its first result is a scalar or a
/// table, that is in `result` (FLOWLUA_ARGUMENT with the 0-based index for a table that is one of the
/// arguments; reference 0 when memory ran out) and the coroutine is back in the pool
/// (FLOWLUA_DONE). A result of any type that has finished is taken out of its mark, which is in
/// `mark`; 0 without one. FLOWLUA_NO_ROOM when memory ran out.
int32_t flowlua_call_back(
    flowlua_host *_Nonnull host, int32_t function, flowlua_value *_Nonnull arguments,
    int32_t count, bool has_handle, uint32_t slot, uint64_t generation, int64_t deadline,
    int64_t grace, flowlua_coroutine *_Nullable *_Nonnull coroutine,
    int32_t *_Nonnull result_count, int32_t *_Nonnull mark, flowlua_value *_Nonnull result);
/// A function that puts its first argument into a userdata with a mark, which isn't 0. Protected.
/// [-0, +1, -]
int32_t flowlua_make_marker(flowlua_host *_Nonnull host, int32_t mark, int32_t metatable);
/// Takes a marked value on top of the stack out of its mark; 0 for anything else. The caller has seen
/// to the room for one more. [-1, +1, -]
int32_t flowlua_unmark(flowlua_host *_Nonnull host, lua_State *_Nonnull L);
/// Writes `file:line: ` of where a function was defined; nothing for one of C. Returns the length.
int32_t flowlua_where_defined(
    flowlua_host *_Nonnull host, int32_t function, char *_Nonnull buffer, int32_t capacity);

/// Runs a function as a coroutine in one call, watched unless `deadline` is 0: gives its reference
/// back, and takes the one argument, a scalar, string or reference, from `value`. When it finished
/// with a scalar or nothing for its first result, that is in `value`, and the coroutine is back in the
/// pool at once (FLOWLUA_DONE). FLOWLUA_NO_ROOM when memory ran out.
int32_t flowlua_run_function(
    flowlua_host *_Nonnull host, int32_t function, flowlua_value *_Nonnull value,
    int64_t deadline, int64_t grace, flowlua_coroutine *_Nullable *_Nonnull coroutine,
    int32_t *_Nonnull result_count);

// MARK: - Stopping a busy coroutine

/// Watches the coroutine of the operation with this handle, which has been started and not returned.
bool flowlua_watch_operation(
    flowlua_host *_Nonnull host, uint32_t slot, uint64_t generation, int64_t deadline,
    int64_t grace);
/// Has a watchdog thread stop the coroutine once the monotonic clock reads `deadline`
/// (nanoseconds; negative counts from now), if it is executing then or as soon as it executes again. After it has stopped, its
/// cleanups have `grace` nanoseconds. false when no thread could be started.
bool flowlua_watch(
    flowlua_host *_Nonnull host, flowlua_coroutine *_Nonnull coroutine, int64_t deadline,
    int64_t grace);
void flowlua_unwatch(flowlua_coroutine *_Nonnull coroutine);
/// The same as `flowlua_watch` for the innermost coroutine that executes now; false without one.
bool flowlua_watch_activity(flowlua_host *_Nonnull host, int64_t deadline, int64_t grace);
/// The innermost coroutine of the scheduler that executes; NULL without one.
const flowlua_coroutine *_Nullable flowlua_activity(const flowlua_host *_Nonnull host);
/// Whether that one has been asked to stop. It stops once its code continues, for which its wait in place
/// has to end.
bool flowlua_is_activity_stopped(const flowlua_host *_Nonnull host);
/// Whether the running code is that of a `__close`, or of what one has called. [-0, +0, -]
bool flowlua_host_runs_close(const flowlua_host *_Nonnull host);
/// Whether such code may continue although the innermost coroutine was asked to stop: until its grace
/// is over, which begins now unless it has begun. Never where nobody watches that coroutine.
bool flowlua_spares_close(flowlua_host *_Nonnull host);
/// Says that all that runs until `flowlua_end_enclosure` belongs to the innermost coroutine that
/// executes: a stop of that one stops what runs on top of it, too. NULL when there is none to end.
flowlua_coroutine *_Nullable flowlua_begin_enclosure(flowlua_host *_Nonnull host);
/// Ends it; the cleanups of what belonged to it are over.
void flowlua_end_enclosure(
    flowlua_host *_Nonnull host, flowlua_coroutine *_Nonnull coroutine);
/// Whether what encloses the code that runs has been asked to stop, so that all that belongs to it has
/// to end, within its grace.
bool flowlua_is_enclosure_stopped(flowlua_host *_Nonnull host);
/// Asks for a stop now, from any thread, while the coroutine is watched.
void flowlua_stop(flowlua_coroutine *_Nonnull coroutine);

// MARK: - Requests of signals

/// What a signal can ask for: an error "interrupted!" in the coroutine that runs, the end of the
/// process, a look at what has come, or, by the watchdog, the end of what a stopped coroutine encloses.
enum { FLOWLUA_INTERRUPT = 1, FLOWLUA_TERMINATE = 2, FLOWLUA_ATTEND = 4, FLOWLUA_STOP = 8 };

/// Asks for something. Safe in a signal handler on the owner thread; the argument is the host, which
/// must not have been freed.
typedef void (*flowlua_request_function)(void *_Nullable host);
flowlua_request_function _Nonnull flowlua_interrupter(void);
flowlua_request_function _Nonnull flowlua_terminator(void);
/// Whether an interruption was asked for that nobody has taken. Safe in a signal handler.
typedef bool (*flowlua_question_function)(void *_Nullable host);
flowlua_question_function _Nonnull flowlua_interruption_question(void);
/// From any thread, while the host is alive: has the code that runs call `attend` soon. It may miss
/// code that is just about to begin. false when no signal could be sent.
bool flowlua_call_attention(flowlua_host *_Nonnull host);
/// Lets the signal for it through to the calling thread, the owner.
void flowlua_take_signal(flowlua_host *_Nonnull host);
/// Whether something was asked for that nobody has taken, or one of certain things.
bool flowlua_has_requested(const flowlua_host *_Nonnull host, uint8_t what);
bool flowlua_has_request(const flowlua_host *_Nonnull host);
/// Takes requests of a kind; whether there was one.
bool flowlua_take_request(flowlua_host *_Nonnull host, uint8_t what);
/// Whether a coroutine of the scheduler is executing, below whatever runs now.
bool flowlua_runs_scheduled(const flowlua_host *_Nonnull host);

#ifdef __cplusplus
}
#endif

#endif
