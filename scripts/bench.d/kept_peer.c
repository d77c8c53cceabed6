// Rows of a table of SQLite, each in a transaction of its own, which is on the disk before the next one begins: the
// settings are those of a store of kept runs. Prints the microseconds of time and of
// CPU time of one.
//
//   kept_peer FILE COUNT
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *database;

static void fail(const char *what) {
  fprintf(stderr, "kept_peer: %s: %s\n", what, sqlite3_errmsg(database));
  exit(1);
}

static void execute(const char *text) {
  if (sqlite3_exec(database, text, NULL, NULL, NULL) != SQLITE_OK) fail(text);
}

static sqlite3_stmt *prepare(const char *text) {
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(database, text, -1, &statement, NULL) != SQLITE_OK) fail(text);
  return statement;
}

static void step(sqlite3_stmt *statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) fail("step");
  sqlite3_reset(statement);
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int count, char **words) {
  if (count != 3) return 2;
  long rows = strtol(words[2], NULL, 10);
  if (sqlite3_open(words[1], &database) != SQLITE_OK) fail("open");
  execute("PRAGMA journal_mode = WAL");
  execute("PRAGMA synchronous = FULL");
  execute("CREATE TABLE IF NOT EXISTS records(id INTEGER PRIMARY KEY, state INTEGER NOT NULL, "
          "content BLOB NOT NULL)");
  sqlite3_stmt *begin = prepare("BEGIN IMMEDIATE"), *commit = prepare("COMMIT");
  sqlite3_stmt *insert = prepare("INSERT OR REPLACE INTO records(state, content) VALUES(1, ?1)");
  // About as many bytes as the record of a small op.
  char content[200];
  memset(content, 'x', sizeof content);
  double before = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
  for (long row = 0; row < rows; row++) {
    step(begin);
    sqlite3_bind_blob(insert, 1, content, sizeof content, SQLITE_STATIC);
    step(insert);
    step(commit);
  }
  used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
  printf("%.3f %.3f\n", (now(CLOCK_MONOTONIC) - before) / (double)rows, used / (double)rows);
  sqlite3_finalize(begin);
  sqlite3_finalize(commit);
  sqlite3_finalize(insert);
  return sqlite3_close(database) == SQLITE_OK ? 0 : 1;
}
