// The form in which values and functions leave a state, as transfer.c, decode.c and travel.c
// share it.
//
// `F P 2` (values) or `F C 2` (code), the root, then a body for each object (table or function) in the
// order in which they were first named. A value is a tag and its payload; lengths and indices are
// LEB128, numbers 8 bytes, little endian. An object's first mention says how large its body is, so
// that the reader makes the table in its size; the body comes when its turn is, so that no depth of
// nesting needs recursion.
#ifndef CFLOWLUA_TRANSFER_H
#define CFLOWLUA_TRANSFER_H

#include "internal.h"

enum {
  TAG_NIL = 0,
  TAG_FALSE = 1,
  TAG_TRUE = 2,
  TAG_INTEGER = 3,
  TAG_FLOAT = 4,
  TAG_STRING = 5,   // length, bytes
  TAG_KNOWN = 6,    // index of an object that was named before
  TAG_TABLE = 7,    // a new one: 4 bytes each for the numbers of list values and of entries
  TAG_SECRET = 8,   // a value that is marked: then the value
  TAG_TYPED = 13,   // a new table with a metatable: as TAG_TABLE, then how the metatable is found
  TAG_ERROR = 14,   // the metatable of errors
  // Code only.
  TAG_FUNCTION = 9,   // a new one: length, what lua_dump wrote; its body says what its upvalues are
  TAG_MODULE = 10,    // what `require` of a string answers
  TAG_FIELD = 11,     // a field of a module: the module's name, the field's
  TAG_GLOBALS = 12,   // the table of globals
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

typedef struct flowlua_reader flowlua_reader;

typedef struct encoder {
  flowlua_host *host;
  flowlua_buffer *out;
  flowlua_refusal *refusal;
  bool is_code;
  bool is_refused;
  size_t start;
  met_object *objects;
  uint32_t count, capacity;
  uint32_t current;  // whose body is being written
  uint32_t *buckets;  // open addressing over the objects; NULL while they are few
  uint32_t mask;
  const void **cells;  // the identities of the variables met so far
  uint32_t cell_count, cell_capacity;
  met_upvalue *upvalues;
  uint32_t upvalue_count, upvalue_capacity;
  // Stack indices.
  int root;
  int queue;  // a table of the objects but the first; 0 while there is none
  // A table from what has a name to the bytes that say it, in values from the metatables that were met;
  // nil until it is needed.
  int names;
  met_object few[INLINE_OBJECTS];
} encoder;

void flowlua_encoder_open(
    encoder *e, flowlua_host *host, flowlua_buffer *out, flowlua_refusal *refusal);
void flowlua_encoder_close(encoder *e);
/// Writes the value on top. false when it is refused. [-0, +0, m]
bool flowlua_encode_top(encoder *e, lua_State *L);
/// Writes the bodies of all objects. false when something is refused. [-0, +0, m]
bool flowlua_encode_bodies(encoder *e, lua_State *L);
/// Pushes an object that was met. [-0, +1, -]
void flowlua_push_met(encoder *e, lua_State *L, uint32_t index);
/// Whether an object is new; if so it is noted. The object is on top. [-0, +0, m]
bool flowlua_meet(encoder *e, lua_State *L, uint32_t *index);
// refusal.c
/// Notes that the value on top can't go, and the way to it. Answers false. [-0, +0, v]
bool flowlua_refuse(encoder *e, lua_State *L);

// keys.c
/// Whether a key is one of 1 to `listed`. [-0, +0, -]
bool flowlua_is_listed(lua_State *L, int key, int64_t listed);
/// The keys of a table but 1 to `listed`, as a list from 0 on; how many. Those that can be sorted are,
/// before the others. [-0, +1, m]
int64_t flowlua_push_sorted_keys(lua_State *L, int table, int64_t listed);

// layout.c
typedef struct list_slot list_slot;
/// The slots of a table that has nothing but numbers as 1, 2, …; NULL for any other, or when it isn't
/// known how to look. They are there until the state is used again. [-0, +0, m]
const list_slot *flowlua_list_slots(encoder *e, lua_State *L, int index, size_t *count);
/// Writes numbers, 9 bytes each.
void flowlua_write_slots(uint8_t *at, const list_slot *slots, size_t count);

void flowlua_put(lua_State *L, flowlua_buffer *out, const void *bytes, size_t count);
void flowlua_put_byte(lua_State *L, flowlua_buffer *out, uint8_t byte);
void flowlua_put_number(lua_State *L, flowlua_buffer *out, uint64_t number);

// travel.c
/// Writes how a table, function or userdata with a name is found, if it has one. [-0, +0, m]
bool flowlua_encode_name(encoder *e, lua_State *L);
/// Writes how the metatable on top is found: as a module or as a field of one, or as that of errors.
/// false when it is neither. [-0, +0, m]
bool flowlua_encode_metatable(encoder *e, lua_State *L);
/// Gives the table on top the metatable that comes next. [-0, +0, e]
bool flowlua_decode_metatable(flowlua_reader *r, lua_State *L);
/// Names the function on top, with its code if it is new and has no name. [-0, +0, m]
bool flowlua_encode_function(encoder *e, lua_State *L, bool by_name);
/// Writes the body of the function on top. [-0, +0, m]
bool flowlua_encode_upvalues(encoder *e, lua_State *L);
/// Completes a refusal with the upvalue through which the value was met.
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

struct flowlua_reader {
  flowlua_host *host;
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
};

extern const uint8_t flowlua_value_header[3];
extern const uint8_t flowlua_code_header[3];

void flowlua_reader_open(
    flowlua_reader *r, flowlua_host *host, const uint8_t *bytes, size_t size, bool is_code);
void flowlua_reader_close(flowlua_reader *r);
/// Pushes `count` values and closes the reader. [-0, +count or 1, -]
int32_t flowlua_decode_protected(flowlua_reader *r, lua_State *L, int32_t count);
/// Pushes a value with all it refers to; false when the bytes are wrong. [-0, +1, e]
bool flowlua_decode_graph(flowlua_reader *r, lua_State *L);

// The parts of it. All answer false when the bytes are wrong, and have said why.
bool flowlua_decode_fail(flowlua_reader *r, const char *problem);
bool flowlua_get_byte(flowlua_reader *r, uint8_t *byte);
bool flowlua_get_number(flowlua_reader *r, uint64_t *number);
bool flowlua_get_bytes(flowlua_reader *r, const char **bytes, size_t *count);
/// Pushes one value; of an object, what is there before its body has been read. [-0, +1, e]
bool flowlua_decode_value(flowlua_reader *r, lua_State *L);
/// Notes an object whose body takes `size` bytes at least. [-0, +0, m]
bool flowlua_announce(
    flowlua_reader *r, lua_State *L, uint32_t list, uint32_t entries, size_t size);
/// Keeps the object on top as the one that was announced last. [-0, +0, m]
void flowlua_keep_announced(flowlua_reader *r, lua_State *L);
/// [-0, +1, -]
void flowlua_push_announced(flowlua_reader *r, lua_State *L, uint32_t index);

// travel.c: what only code has.
/// [-0, +1, e]
bool flowlua_decode_named(flowlua_reader *r, lua_State *L, uint8_t tag);
/// Pushes a new function, its upvalues not set yet. [-0, +1, e]
bool flowlua_decode_function(flowlua_reader *r, lua_State *L);
/// Sets the upvalues of the function on top. [-0, +0, e]
bool flowlua_decode_upvalues(flowlua_reader *r, lua_State *L, uint32_t index);

#endif
