// Connections to databases.
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
