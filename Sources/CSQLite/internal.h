#ifndef CSQLITE_INTERNAL_H
#define CSQLITE_INTERNAL_H

#include "CSQLite.h"

/// The functions of the library that are used, by their names in it.
struct csqlite_library {
  int (*sqlite3_libversion_number)(void);
  int (*sqlite3_open_v2)(const char *path, sqlite3 **connection, int flags, const char *vfs);
  int (*sqlite3_close_v2)(sqlite3 *connection);
  int (*sqlite3_busy_timeout)(sqlite3 *connection, int milliseconds);
  int (*sqlite3_extended_result_codes)(sqlite3 *connection, int on);
  const char *(*sqlite3_errmsg)(sqlite3 *connection);
  int (*sqlite3_extended_errcode)(sqlite3 *connection);
  int (*sqlite3_system_errno)(sqlite3 *connection);
  int (*sqlite3_get_autocommit)(sqlite3 *connection);
  int (*sqlite3_file_control)(sqlite3 *connection, const char *name, int operation, void *place);
  int (*sqlite3_prepare_v3)(
      sqlite3 *connection, const char *text, int count, unsigned int flags,
      sqlite3_stmt **statement, const char **tail);
  int (*sqlite3_step)(sqlite3_stmt *statement);
  int (*sqlite3_reset)(sqlite3_stmt *statement);
  int (*sqlite3_clear_bindings)(sqlite3_stmt *statement);
  int (*sqlite3_finalize)(sqlite3_stmt *statement);
  int (*sqlite3_bind_int64)(sqlite3_stmt *statement, int index, sqlite3_int64 number);
  int (*sqlite3_bind_double)(sqlite3_stmt *statement, int index, double number);
  int (*sqlite3_bind_blob64)(
      sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count,
      void (*release)(void *));
  sqlite3_int64 (*sqlite3_column_int64)(sqlite3_stmt *statement, int column);
  double (*sqlite3_column_double)(sqlite3_stmt *statement, int column);
  int (*sqlite3_column_type)(sqlite3_stmt *statement, int column);
  const void *(*sqlite3_column_blob)(sqlite3_stmt *statement, int column);
  int (*sqlite3_column_bytes)(sqlite3_stmt *statement, int column);
};

/// Filled by csqlite_load.
extern struct csqlite_library csqlite_library;

#endif
