// From tables where Lua keeps them (layout.h) to the bytes of JSON.
//
// Nothing here calls Lua but its allocator, so that no table changes and no error is raised meanwhile.
#include <stdlib.h>

#include "json_writer.h"
#include "layout.h"

enum {
  INLINE_TABLES = 16,
  /// As many members are sorted by inserting, which is faster for few.
  FEW_MEMBERS = 24,
};

/// A member of an object: its key's first eight bytes, then all, and its value.
typedef struct direct_member {
  uint64_t prefix;
  const char *key;
  size_t count;
  const list_slot *value;
} direct_member;

/// A table that is being written.
typedef struct direct_table {
  const table_layout *table;
  const list_slot *list;  // the values of an array; NULL for members
  size_t first;           // of the members
  size_t next, count;
  bool is_array;
} direct_table;

typedef struct direct_writer {
  json_output *out;
  const void *marks[2];  // the metatables of objects and arrays
  json_memory members;   // direct_member
  json_memory more_tables;
  direct_table *tables;
  int32_t depth, capacity;
  direct_table few[INLINE_TABLES];
} direct_writer;

// MARK: - Members

static inline bool comes_before(const direct_member *a, const direct_member *b) {
  if (a->prefix != b->prefix) return a->prefix < b->prefix;
  if (a->count <= 8 || b->count <= 8) return a->count < b->count;
  size_t count = a->count < b->count ? a->count : b->count;
  int order = memcmp(a->key + 8, b->key + 8, count - 8);
  return order != 0 ? order < 0 : a->count < b->count;
}

static int compare_members(const void *a, const void *b) { return comes_before(a, b) ? -1 : 1; }

static void sort_members(direct_member *members, size_t count) {
  if (count > FEW_MEMBERS) {
    qsort(members, count, sizeof *members, compare_members);
    return;
  }
  for (size_t i = 1; i < count; i++) {
    direct_member member = members[i];
    size_t at = i;
    for (; at > 0 && comes_before(&member, &members[at - 1]); at--) members[at] = members[at - 1];
    members[at] = member;
  }
}

/// The first eight bytes as a number of the same order.
static inline uint64_t prefix_of(const char *key, size_t count) {
  uint64_t word;
  if (count >= 8) memcpy(&word, key, 8);
  else word = json_short_word(key, count);
  return __builtin_bswap64(word);
}

/// Room for as many members as a table has nodes.
static direct_member *room_for_members(direct_writer *w, const direct_table *table) {
  size_t size = node_count(table->table) * sizeof(direct_member);
  return (direct_member *)json_space(w->out->L, &w->members, size);
}

/// Collects the members of an object; false when a key isn't a string.
static bool collect_members(direct_writer *w, direct_table *table) {
  const table_layout *layout = table->table;
  direct_member *members = room_for_members(w, table), *member = members;
  if (members == NULL) return false;
  for (const table_node *node = layout->nodes, *end = node + node_count(layout); node < end;
       node++) {
    if (is_nil_slot(slot_of(node))) continue;
    if (!is_string_slot(node->key_type)) return false;
    const string_layout *key = node->key.pointer;
    member->key = key->bytes;
    member->count = string_count(key);
    member->prefix = prefix_of(member->key, member->count);
    member->value = slot_of(node);
    member += 1;
  }
  table->count = (size_t)(member - members);
  w->members.count += table->count * sizeof *member;
  if (!w->out->options->is_unsorted) sort_members(members, table->count);
  return true;
}

/// Collects the values of a list of which some are not in the array; false for keys but 1 to n.
static bool collect_list(direct_writer *w, direct_table *table, size_t listed) {
  const table_layout *layout = table->table;
  const table_node *node, *end = layout->nodes + node_count(layout);
  size_t count = listed;
  for (node = layout->nodes; node < end; node++) {
    if (is_nil_slot(slot_of(node))) continue;
    if (node->key_type != SLOT_INTEGER) return false;
    count += 1;
  }
  size_t size = count * sizeof(direct_member);
  direct_member *members = (direct_member *)json_space(w->out->L, &w->members, size);
  if (members == NULL) return false;
  for (size_t i = 0; i < listed; i++) members[i].value = &layout->array[i];
  for (node = layout->nodes; node < end; node++) {
    if (is_nil_slot(slot_of(node))) continue;
    uint64_t index = (uint64_t)node->key.integer - 1;
    if (index < listed || index >= count) return false;
    members[index].value = slot_of(node);
  }
  w->members.count += size;
  table->list = NULL;
  table->count = count;
  return true;
}

// MARK: - Tables

/// Whether a table that has no array begins with an index. That is enough to know, as others of its keys
/// make it one that isn't written here.
static bool begins_with_index(const table_layout *layout) {
  const table_node *node = layout->nodes, *end = node + node_count(layout);
  while (node < end && is_nil_slot(slot_of(node))) node += 1;
  return node < end && node->key_type == SLOT_INTEGER;
}

static direct_table *add_table(direct_writer *w) {
  if (w->depth == w->capacity) {
    size_t held = sizeof(direct_table) * (size_t)w->capacity;
    if (json_space(w->out->L, &w->more_tables, 2 * held) == NULL) return NULL;
    if (w->tables == w->few) memcpy(w->more_tables.bytes, w->few, held);
    w->tables = (direct_table *)w->more_tables.bytes;
    w->capacity *= 2;
  }
  return &w->tables[w->depth++];
}

/// Whether a table isn't among those that contain it, as far as one look tells; json_writer.c says why that
/// is enough.
static inline bool is_new(const direct_writer *w, const table_layout *layout) {
  if (w->depth == 0) return true;
  int32_t open = (1 << (31 - __builtin_clz((unsigned)w->depth))) - 1;
  return w->tables[open].table != layout;
}

/// The table that a view shows, or the table itself.
static inline const table_layout *shown_by(const table_layout *layout) {
  if (layout->metatable == NULL || node_count(layout) != 1) return layout;
  const table_node *node = layout->nodes;
  bool is_view = node->key_type == SLOT_LIGHT && node->key.pointer == &flowlua_view_key
      && node->type == SLOT_TABLE;
  return is_view ? slot_of(node)->value.pointer : layout;
}

/// Begins with a table: its bracket, and how its values are found.
static bool begin_table(direct_writer *w, const table_layout *layout) {
  layout = shown_by(layout);
  if (w->depth >= w->out->options->max_depth || !is_new(w, layout)) return false;
  direct_table *table = add_table(w);
  if (table == NULL) return false;
  bool is_marked_array = layout->metatable != NULL && layout->metatable == w->marks[1];
  bool is_marked_object = layout->metatable != NULL && layout->metatable == w->marks[0];
  size_t slots = slot_count(layout), listed = 0;
  while (listed < slots && !is_nil_slot(&layout->array[listed])) listed += 1;
  for (size_t i = listed; i < slots; i++)
    if (!is_nil_slot(&layout->array[i])) return false;
  *table = (direct_table){
      .table = layout,
      .list = layout->array,
      .first = w->members.count / sizeof(direct_member),
      .count = listed,
  };
  table->is_array =
      is_marked_array || (!is_marked_object && (listed > 0 || begins_with_index(layout)));
  if (!table->is_array) {
    table->list = NULL;
    if (listed > 0 || !collect_members(w, table)) return false;
    if (table->count == 0 && !is_marked_object) table->is_array = w->out->options->empty_is_array;
  } else if (layout->last_free != NULL && !collect_list(w, table, listed)) {
    return false;
  }
  return json_put_byte(w->out, table->is_array ? '[' : '{');
}

static bool write_string(direct_writer *w, const string_layout *string) {
  return json_put_string(w->out, string->bytes, string_count(string));
}

/// Writes the value in a slot, or begins with it as a table.
static inline bool write_slot(direct_writer *w, const list_slot *slot) {
  json_output *out = w->out;
  switch (slot->type) {
  case SLOT_SHORT_STRING:
  case SLOT_LONG_STRING: return write_string(w, slot->value.pointer);
  case SLOT_INTEGER: return json_put_integer(out, slot->value.integer);
  case SLOT_FLOAT:
    // Neither NaN nor an infinity.
    return slot->value.number - slot->value.number == 0 && json_put_float(out, slot->value.number);
  case SLOT_TRUE: return json_put(out, "true", 4);
  case SLOT_FALSE: return json_put(out, "false", 5);
  case SLOT_LIGHT: return slot->value.pointer == NULL && json_put(out, "null", 4);
  case SLOT_TABLE: return begin_table(w, slot->value.pointer);
  default: return false;
  }
}

/// Writes the values of the innermost table from the next one on, up to one that is a table, with which it
/// begins.
static bool write_values(direct_writer *w) {
  int32_t depth = w->depth;
  direct_table *table = &w->tables[depth - 1];
  while (table->next < table->count) {
    size_t next = table->next++;
    if (!json_begin_item(w->out, next == 0, depth)) return false;
    const list_slot *slot;
    if (table->list != NULL) {
      slot = &table->list[next];
    } else {
      const direct_member *member = (const direct_member *)w->members.bytes + table->first + next;
      slot = member->value;
      if (!table->is_array && !json_put_key(w->out, member->key, member->count)) return false;
    }
    if (!write_slot(w, slot)) return false;
    if (w->depth != depth) return true;
  }
  w->members.count = table->first * sizeof(direct_member);
  w->depth -= 1;
  return json_end(w->out, table->is_array, table->count == 0, w->depth);
}

bool flowlua_json_write_directly(json_output *out, flowlua_state *state, const void *table) {
  direct_writer w;
  memset(&w, 0, offsetof(direct_writer, few));
  w.out = out;
  w.marks[0] = state->json_mark_identities[0];
  w.marks[1] = state->json_mark_identities[1];
  w.members.never_raises = w.more_tables.never_raises = true;
  w.tables = w.few;
  w.capacity = INLINE_TABLES;
  bool is_written = begin_table(&w, table);
  while (is_written && w.depth > 0) is_written = write_values(&w);
  flowlua_json_free(out->L, &w.members);
  flowlua_json_free(out->L, &w.more_tables);
  return is_written;
}
