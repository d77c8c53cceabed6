// From Lua values to JSON: what the files of the writer share.
#ifndef CFLOWLUA_JSON_WRITER_H
#define CFLOWLUA_JSON_WRITER_H

#include "json_output.h"

/// How the values of a table are visited.
enum {
  WRITE_NOTHING,  // it is empty
  WRITE_LIST,     // by index
  WRITE_MEMBERS,  // by `lua_next`, whose key stands above the table
  WRITE_SORTED,   // a table of the sorted keys stands above the table, then the present key
};

/// A table that is being written.
typedef struct written_table {
  const void *identity;
  int place;
  uint8_t way;
  bool is_array;
  lua_Integer next;   // how many values were begun
  lua_Integer count;  // how many there are, of a list or of sorted members
} written_table;

enum { INLINE_WRITES = 16 };

typedef struct json_writer {
  lua_State *L;
  flowlua_state *state;
  const flowlua_json_writing *options;
  flowlua_json_error *error;
  json_output out;
  json_memory more_tables;
  written_table *tables;
  int32_t depth, capacity;
  bool has_failed;
  bool has_secret;
  flowlua_value held;  // of a secret, until it is written
  written_table few[INLINE_WRITES];
} json_writer;

// json_direct.c
/// Writes a table with all in it from where Lua keeps them, whose layout is known; false, with a part of the
/// text, where anything is refused or unusual: then the other way has to be gone. [-0, +0, -]
bool flowlua_json_write_directly(json_output *out, flowlua_state *state, const void *table);

// json_refusal.c
/// Each notes why a value can't be written, and the way to it, and returns false. [-0, +0, -]
/// The value that is next in the innermost table.
bool flowlua_json_refuse(json_writer *w, const char *problem, const char *hint);
/// The table that `depth` others contain.
bool flowlua_json_refuse_table(json_writer *w, const char *problem, int32_t depth);
/// The value on top, whose type is the problem.
bool flowlua_json_refuse_type(json_writer *w);
/// The innermost table, whose keys are the problem.
bool flowlua_json_refuse_keys(json_writer *w);

#endif
