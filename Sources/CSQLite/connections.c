// Connections to databases.
#include <limits.h>

#include "internal.h"

int csqlite_open(const char *path, sqlite3 **connection, int flags) {
  *connection = NULL;
  int code = csqlite_library.sqlite3_open_v2(path, connection, flags, NULL);
  if (*connection != NULL) csqlite_library.sqlite3_extended_result_codes(*connection, 1);
  return code;
}

void csqlite_close(sqlite3 *connection) { csqlite_library.sqlite3_close_v2(connection); }

void csqlite_busy_timeout(sqlite3 *connection, int milliseconds) {
  csqlite_library.sqlite3_busy_timeout(connection, milliseconds);
}

const char *csqlite_message(sqlite3 *connection) {
  return csqlite_library.sqlite3_errmsg(connection);
}

int csqlite_code(sqlite3 *connection) {
  return csqlite_library.sqlite3_extended_errcode(connection);
}

int csqlite_system_code(sqlite3 *connection) {
  return csqlite_library.sqlite3_system_errno(connection);
}

bool csqlite_is_in_transaction(sqlite3 *connection) {
  return csqlite_library.sqlite3_get_autocommit(connection) == 0;
}

bool csqlite_has_moved(sqlite3 *connection) {
  int moved = 0;
  int code =
      csqlite_library.sqlite3_file_control(connection, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

// Prepared statements, their parameters and columns.

int csqlite_prepare(sqlite3 *connection, const char *text, size_t count, sqlite3_stmt **statement) {
  *statement = NULL;
  if (count > INT_MAX) return SQLITE_TOOBIG;
  return csqlite_library.sqlite3_prepare_v3(
      connection, text, (int)count, SQLITE_PREPARE_PERSISTENT, statement, NULL);
}

int csqlite_step(sqlite3_stmt *statement) { return csqlite_library.sqlite3_step(statement); }

void csqlite_reset(sqlite3_stmt *statement) {
  csqlite_library.sqlite3_reset(statement);
  csqlite_library.sqlite3_clear_bindings(statement);
}

void csqlite_finalize(sqlite3_stmt *statement) { csqlite_library.sqlite3_finalize(statement); }

int csqlite_bind_integer(sqlite3_stmt *statement, int index, int64_t number) {
  return csqlite_library.sqlite3_bind_int64(statement, index, number);
}

int csqlite_bind_double(sqlite3_stmt *statement, int index, double number) {
  return csqlite_library.sqlite3_bind_double(statement, index, number);
}

int csqlite_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, size_t count) {
  // Without a pointer the library would bind NULL instead of no bytes.
  return csqlite_library.sqlite3_bind_blob64(
      statement, index, bytes == NULL ? "" : bytes, count, SQLITE_TRANSIENT);
}

int64_t csqlite_integer(sqlite3_stmt *statement, int column) {
  return csqlite_library.sqlite3_column_int64(statement, column);
}

double csqlite_double(sqlite3_stmt *statement, int column) {
  return csqlite_library.sqlite3_column_double(statement, column);
}

bool csqlite_is_null(sqlite3_stmt *statement, int column) {
  return csqlite_library.sqlite3_column_type(statement, column) == SQLITE_NULL;
}

const void *csqlite_bytes(sqlite3_stmt *statement, int column, size_t *count) {
  const void *bytes = csqlite_library.sqlite3_column_blob(statement, column);
  int size = bytes == NULL ? 0 : csqlite_library.sqlite3_column_bytes(statement, column);
  *count = size > 0 ? (size_t)size : 0;
  return bytes;
}
