// The form in which values and functions leave a state, as the files of the
// encoder and of the decoder share it.
//
// `F P 3` (values) or `F C 3` (code), the root, then a body for each object (table or function) in the
// order in which they were first named. A value is a tag and its payload; lengths and indices are
// LEB128, numbers 8 bytes, little endian. An object's first mention says how large its body is, so
// that the reader makes the table in its size; the body comes when its turn is, so that no depth of
// nesting needs recursion.
#ifndef CFLOWLUA_CODEC_H
#define CFLOWLUA_CODEC_H

#include "internal.h"

enum {
  TAG_NIL = 0,
  TAG_FALSE = 1,
  TAG_TRUE = 2,
  TAG_INTEGER = 3,
  TAG_FLOAT = 4,
  TAG_STRING = 5,    // length, bytes
  TAG_KNOWN = 6,     // index of an object that was named before
  TAG_TABLE = 7,     // a new one: 4 bytes each for the numbers of list values and of entries
  TAG_SECRET = 8,    // a value that is marked: then the value
  TAG_TYPED = 13,    // a new table with a metatable: as TAG_TABLE, then how the metatable is found
  TAG_ERROR = 14,    // the metatable of errors
  TAG_NULL = 15,     // the light userdata that is NULL
  TAG_SETTING = 18,  // the metatable of settings
  // With TAG_TABLE: it is marked for JSON.
  TAG_ARRAY = 0x40,
  TAG_OBJECT = 0x80,
  // Code only.
  TAG_FUNCTION = 9,  // a new one: length, what lua_dump wrote; its body says what its upvalues are
  TAG_MODULE = 10,   // what `require` of a string returns
  TAG_FIELD = 11,    // a field of a module: the module's name, the field's
  TAG_GLOBALS = 12,  // the table of globals
  // Forms of code only, which nobody reads back.
  TAG_HOST = 16,     // a new userdata: its body says what it is
  TAG_FOREIGN = 17,  // what has no content that can be compared: the name of its type
};

/// A table or a function that was met.
typedef struct met_object {
  const void *identity;
  size_t named_at;  // where its tag stands
  size_t body;      // where its body begins
  uint32_t parent;  // the object whose body names it first
} met_object;

/// An upvalue of a function, for messages.
typedef struct met_upvalue {
  size_t offset;
  uint32_t function;
  int32_t number;
} met_upvalue;

enum {
  INLINE_OBJECTS = 8,
  NO_OBJECT = UINT32_MAX,
  FLOWLUA_PILE = 120,  // list values that are read at a time
};

/// How an upvalue of a function is written.
enum {
  CELL_NEW = 0,    // a variable of its own: then its value
  CELL_KNOWN = 1,  // the variable with this index
};

typedef struct encoder {
  flowlua_state *state;
  flowlua_buffer *out;
  flowlua_encode_error *error;
  bool is_code;
  bool is_form;    // a form of code that is only compared; is_code is set, too
  bool is_nested;  // the form of an entry of a table, by itself
  bool has_failed;
  size_t start;
  met_object *objects;
  uint32_t count, capacity;
  uint32_t current;   // whose body is being written
  uint32_t *buckets;  // open addressing over the objects; NULL while they are few
  uint32_t mask;
  const void **cells;  // the identities of the variables met so far
  uint32_t cell_count, cell_capacity;
  uint32_t *cell_buckets;  // as `buckets`, over the variables
  met_upvalue *upvalues;
  uint32_t upvalue_count, upvalue_capacity;
  // Stack indices.
  int root;
  int queue;  // a table of the objects but the first; 0 while there is none
  // A table from what has a name to the bytes that say it, in values from the metatables that were met;
  // nil until it is needed.
  int names;
  // In forms: a table whose keys are the names of the globals written so far, and true when the globals'
  // metatable is.
  int seen_globals;
  // In forms: a list of the libraries met so far as tables, also from each to its name; nil for none.
  int reached;
  bool reaches_globals;  // in forms: something but a function holds the globals
  // In forms: writes what comes after all bodies. [-0, +0, m]
  bool (*finish)(struct encoder *, lua_State *);
  flowlua_buffer entries;  // in forms: the forms of entries whose keys have no order
  flowlua_buffer *parts;   // in forms: where the parts are listed; NULL for nowhere
  met_object few[INLINE_OBJECTS];
} encoder;

// encoder.c
/// Sees to room for so many bytes more; false when memory ran out.
bool flowlua_buffer_reserve(flowlua_buffer *buffer, size_t count);
void flowlua_put(lua_State *L, flowlua_buffer *out, const void *bytes, size_t count);
void flowlua_put_number(lua_State *L, flowlua_buffer *out, uint64_t number);
/// Room for one element more, doubled by malloc. [-0, +0, m]
void *flowlua_grown(lua_State *L, void *list, uint32_t count, uint32_t *capacity, size_t size);

/// Where so many bytes go. [-0, +0, m]
static inline uint8_t *space(lua_State *L, flowlua_buffer *out, size_t count) {
  if (count > out->capacity - out->count && !flowlua_buffer_reserve(out, count))
    flowlua_raise_memory(L);
  return out->bytes + out->count;
}

static inline void put_byte(lua_State *L, flowlua_buffer *out, uint8_t byte) {
  *space(L, out, 1) = byte;
  out->count += 1;
}

static inline size_t write_number(uint8_t *at, uint64_t number) {
  size_t count = 0;
  for (; number >= 0x80; number >>= 7) at[count++] = (uint8_t)(number | 0x80);
  at[count++] = (uint8_t)number;
  return count;
}

// encoder.c
/// Whether a key has a place in the order of keys. [-0, +0, -]
bool flowlua_is_sortable(lua_State *L, int key);
/// Whether a key is one of 1 to `listed`. [-0, +0, -]
bool flowlua_is_listed(lua_State *L, int key, int64_t listed);
/// The keys of a table but 1 to `listed`, as a list from 0 on; how many. Those that can be sorted are,
/// before the others. [-0, +1, m]
int64_t flowlua_push_sorted_keys(lua_State *L, int table, int64_t listed);

// encoder.c
extern const uint8_t flowlua_value_header[3];
extern const uint8_t flowlua_code_header[3];
void flowlua_encoder_open(
    encoder *e, flowlua_state *state, flowlua_buffer *out, flowlua_encode_error *error);
void flowlua_encoder_close(encoder *e);
/// Pushes an object that was met. [-0, +1, -]
void flowlua_push_met(encoder *e, lua_State *L, uint32_t index);
/// Whether an object is new; if so it is noted. The object is on top. [-0, +0, m]
bool flowlua_meet(encoder *e, lua_State *L, uint32_t *index);
/// Whether a variable of functions is new; if so it is noted. [-0, +0, m]
bool flowlua_meet_cell(encoder *e, lua_State *L, const void *identity, uint32_t *index);

// code_dump.c
/// A writer for lua_dump, into a flowlua_buffer.
int flowlua_write_code(lua_State *L, const void *bytes, size_t count, void *buffer);
/// Whether dumps are laid out as expected. [-0, +0, m]
bool flowlua_knows_dumps(encoder *e, lua_State *L);
/// Appends the code of the function on top without debug information and, if dumps are known, without
/// lines. [-0, +0, m]
void flowlua_put_code_form(encoder *e, lua_State *L);
/// Pushes a list of the string constants of a function and of those in it, whose code form has so many
/// bytes at an offset. false, with nothing pushed, when dumps aren't known. [-0, +(0|1), m]
bool flowlua_push_constants(encoder *e, lua_State *L, size_t offset, size_t size);

/// Where a part of a form begins.
typedef struct part_start {
  size_t offset;
  uint32_t known;  // how many objects were met before it
} part_start;

static inline part_start begin_part(const encoder *e) {
  return (part_start){e->out->count, e->count};
}

/// Lists a part of a form that has been written. [-0, +0, m]
void flowlua_list_part(
    encoder *e, lua_State *L, int32_t kind, const char *name, size_t count, part_start start);

// encode_error.c
/// Lists a part of a form that is a field, whose key is at an index. [-0, +0, m]
void flowlua_list_field(encoder *e, lua_State *L, int key, part_start start);
/// How a key is written as a step of a path: `.name`, `[3]`, `["a b"]`. [-0, +0, -]
void flowlua_format_step(lua_State *L, int key, char *step, size_t size);
/// Notes that the value on top can't go, and the way to it. Returns false. [-0, +0, v]
bool flowlua_encode_fail(encoder *e, lua_State *L);
/// Completes an error with the upvalue through which the value was met: that in whose bytes an offset
/// lies. The function is on top. [-0, +0, v]
void flowlua_name_upvalue(encoder *e, lua_State *L, uint32_t function, size_t offset);

/// How large the table is that was announced.
typedef struct announced {
  uint32_t list, entries;
} announced;

/// Where a variable that closures share is.
typedef struct read_cell {
  uint32_t function;
  int32_t number;
} read_cell;

typedef struct flowlua_reader {
  flowlua_state *state;
  const uint8_t *bytes;
  size_t size, offset;
  size_t promised;  // what the announced bodies take at least
  bool is_code;
  const char *problem;
  announced *objects;
  uint32_t count, capacity;
  read_cell *cells;
  uint32_t cell_count, cell_capacity;
  flowlua_value held;  // on its way to Lua
  // Stack indices.
  int first;
  int others;  // a table of the objects but the first, once there are more
  announced few[INLINE_OBJECTS];
} flowlua_reader;

// reader.c
void flowlua_reader_open(
    flowlua_reader *r, flowlua_state *state, const uint8_t *bytes, size_t size, bool is_code);
void flowlua_reader_close(flowlua_reader *r);
// All answer false when the bytes are wrong, and have said why.
bool flowlua_get_number(flowlua_reader *r, uint64_t *number);
bool flowlua_get_bytes(flowlua_reader *r, const char **bytes, size_t *count);
/// Notes an object whose body takes `size` bytes at least. [-0, +0, m]
bool flowlua_announce(
    flowlua_reader *r, lua_State *L, uint32_t list, uint32_t entries, size_t size);
/// Keeps the object on top as the one that was announced last. [-0, +0, m]
void flowlua_keep_announced(flowlua_reader *r, lua_State *L);
/// [-0, +1, -]
void flowlua_push_announced(flowlua_reader *r, lua_State *L, uint32_t index);

static inline size_t remaining(const flowlua_reader *r) { return r->size - r->offset; }

/// Notes why the bytes are wrong. Returns false.
static inline bool decode_fail(flowlua_reader *r, const char *problem) {
  if (r->problem == NULL) r->problem = problem;
  return false;
}

static inline bool ends_early(flowlua_reader *r) { return decode_fail(r, "it ends too early"); }

static inline bool get_byte(flowlua_reader *r, uint8_t *byte) {
  if (remaining(r) == 0) return ends_early(r);
  *byte = r->bytes[r->offset++];
  return true;
}

// additions.c
/// Writes what functions may use without referring to it: fields that a script has added to libraries, and
/// metatables of all values of a type. All bodies are written. [-0, +0, m]
bool flowlua_encode_additions(encoder *e, lua_State *L);

// names.c
/// Writes how a table, function or userdata with a name is found, if it has one. [-0, +0, m]
bool flowlua_encode_name(encoder *e, lua_State *L);
/// Makes the table of names, if there is none. [-0, +0, m]
void flowlua_ensure_names(encoder *e, lua_State *L);
/// Whether the field on top, which a library has, is one that a script has added. [-0, +0, m]
bool flowlua_is_added(flowlua_state *state, lua_State *L, const char *library, const char *field);
/// Notes a library that a form has met, at an index, if it is a table. [-0, +0, m]
void flowlua_note_library(encoder *e, lua_State *L, int library, const char *name, size_t count);
/// Whether the value on top is a table of globals. [-0, +0, -]
bool flowlua_is_globals(encoder *e, lua_State *L);
/// Writes how the metatable on top is found: as a module or as a field of one, or as the one of errors or of
/// settings. false when it is neither. [-0, +0, m]
bool flowlua_encode_metatable(encoder *e, lua_State *L);
/// Whether the table on top is a setting. [-0, +0, -]
bool flowlua_is_setting(encoder *e, lua_State *L);
/// Pushes what has a name. [-0, +1, e]
bool flowlua_decode_named(flowlua_reader *r, lua_State *L, uint8_t tag);
/// Gives the table on top the metatable that comes next. [-0, +0, e]
bool flowlua_decode_metatable(flowlua_reader *r, lua_State *L);

// value_encoder.c
/// Writes the value on top. false when it is refused. [-0, +0, m]
bool flowlua_encode_top(encoder *e, lua_State *L);
/// Names the function on top, with its code if it is new and has no name. [-0, +0, m]
bool flowlua_encode_function(encoder *e, lua_State *L, bool by_name);
/// Writes the bodies of all objects that have none yet. false when something is refused. [-0, +0, m]
bool flowlua_encode_bodies(encoder *e, lua_State *L);

// code_form.c
/// Writes the type of the value on top, whose content can't be compared. Returns true. [-0, +0, m]
bool flowlua_encode_foreign(encoder *e, lua_State *L);
/// Names the userdata on top. Returns true. [-0, +0, m]
bool flowlua_encode_host_object(encoder *e, lua_State *L);
/// Writes what the userdata on top is. [-0, +0, m]
bool flowlua_encode_host_body(encoder *e, lua_State *L);
/// Writes the globals that the function on top names, if they aren't written yet. [-0, +0, m]
bool flowlua_encode_used_globals(encoder *e, lua_State *L);
/// Writes a global with its name, unless it is nil or is written already. The name is on top. [-1, +0, m]
bool flowlua_encode_global(encoder *e, lua_State *L);
/// Writes the metatable of the globals, if it isn't written yet. [-0, +0, m]
bool flowlua_encode_globals_metatable(encoder *e, lua_State *L);
/// Writes the entries of a table whose keys have no order: those of a list from `first` on. [-0, +0, m]
bool flowlua_encode_unordered(
    encoder *e, lua_State *L, int table, int keys, int64_t first, int64_t total);

// value_decoder.c
/// Pushes `count` values and closes the reader. [-0, +count or 1, -]
int32_t flowlua_decode_protected(flowlua_reader *r, lua_State *L, int32_t count);

#endif
