// SQLite, opened when it is first needed: linking it would cost each start of a script half a
// millisecond.
//
// Each function calls the one of the same name of the library. Every one but csqlite_load needs the
// success of csqlite_load.
#ifndef CSQLITE_H
#define CSQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// SQLITE_READONLY_DBMOVED, whose expression Swift can't import.
enum { CSQLITE_READONLY_MOVED = SQLITE_READONLY_DBMOVED };

/// Opens the library, once for the process. Returns NULL, or a sentence that says why that isn't
/// possible. May be called from any thread.
const char *csqlite_load(void);

// MARK: - Connections. One thread uses a connection at a time.

/// Opens a database; `*connection` has to be closed in any case. Returns the library's code.
int csqlite_open(const char *path, sqlite3 **connection, int flags);
/// Closes a connection whose statements have been finalized; NULL does nothing.
void csqlite_close(sqlite3 *connection);
/// Sets how many milliseconds a statement waits for another process.
void csqlite_busy_timeout(sqlite3 *connection, int milliseconds);
/// The library's text for the last failure; valid until the next call.
const char *csqlite_message(sqlite3 *connection);
/// The library's extended code of the last failure.
int csqlite_code(sqlite3 *connection);
/// The `errno` of the last failure; 0 if there is none.
int csqlite_system_code(sqlite3 *connection);
/// Whether a transaction is open.
bool csqlite_is_in_transaction(sqlite3 *connection);
/// Whether the file has been removed or replaced since it was opened.
bool csqlite_has_moved(sqlite3 *connection);

// MARK: - Statements

/// Compiles a statement; NULL with a code.
int csqlite_prepare(sqlite3 *connection, const char *text, size_t count, sqlite3_stmt **statement);
int csqlite_step(sqlite3_stmt *statement);
/// Ends an execution, and forgets the bound values.
void csqlite_reset(sqlite3_stmt *statement);
void csqlite_finalize(sqlite3_stmt *statement);
/// Parameters are counted from 1.
int csqlite_bind_integer(sqlite3_stmt *statement, int index, int64_t number);
int csqlite_bind_double(sqlite3_stmt *statement, int index, double number);
/// Binds bytes, which are copied.
int csqlite_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, size_t count);
/// Columns are counted from 0. The value of another type is converted.
int64_t csqlite_integer(sqlite3_stmt *statement, int column);
double csqlite_double(sqlite3_stmt *statement, int column);
bool csqlite_is_null(sqlite3_stmt *statement, int column);
/// The bytes of a blob or text, valid until the next step; NULL when there are none.
const void *csqlite_bytes(sqlite3_stmt *statement, int column, size_t *count);

#endif
