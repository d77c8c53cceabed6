// libnats, opened when it is first needed: linking it would cost each start of a script some
// milliseconds, and most machines don't have it.
//
// Every function but cnats_load needs the success of cnats_load. Strings are copied by the library.
#ifndef CNATS_H
#define CNATS_H

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Opens the library, once for the process. Returns NULL, or a sentence that says why that isn't
/// possible. May be called from any thread.
const char *cnats_load(void);

/// The library's text for a code.
const char *cnats_status_text(natsStatus status);
/// The library's text for the last failure of a call of this thread; empty if there is none.
const char *cnats_last_problem(void);

// MARK: - Options. One thread uses them at a time.

/// An option that is a text.
typedef enum cnats_option {
  /// The URLs of the servers, separated by commas.
  CNATS_SERVERS,
  /// The name of the connection, which the server shows.
  CNATS_NAME,
  CNATS_TOKEN,
  /// The user, with a password.
  CNATS_USER,
} cnats_option;

/// A change of a connection.
typedef enum cnats_change {
  CNATS_DISCONNECTED,
  CNATS_RECONNECTED,
  /// It doesn't connect again.
  CNATS_CLOSED,
} cnats_change;

/// The callbacks of all connections, called on threads of the library. The context belongs to the connection or
/// subscription.
typedef struct cnats_events {
  /// A message of a subscription; it is released afterwards.
  void (*received)(uint64_t context, natsMsg *message);
  void (*changed)(uint64_t context, cnats_change change);
  /// Something failed that no call of the program is responsible for.
  void (*failed)(uint64_t context, natsStatus status, const char *text);
} cnats_events;

/// Sets the callbacks, before the first connection is made.
void cnats_set_events(const cnats_events *events);
/// Makes options that reconnect for ever and notice a dead server within seconds; NULL without memory. With TLS, if it is
/// demanded, other servers may be used that the given ones announce.
natsOptions *cnats_options_make(uint64_t context, bool is_secure);
void cnats_options_free(natsOptions *options);
/// Sets an option; `password` is the user's.
natsStatus cnats_set(
    natsOptions *options, cnats_option option, const char *text, const char *password);

// MARK: - Connections. Any thread; all threads that they start take no signals.

/// Connects; blocks. The options may be released afterwards.
natsStatus cnats_connect(natsOptions *options, natsConnection **connection);
/// Closes a connection; waits up to a second for its last messages, and for its threads.
void cnats_close(natsConnection *connection);
/// Closes and releases a connection. No other call may be in progress.
void cnats_destroy(natsConnection *connection);
/// Waits until the server has processed everything that was published.
natsStatus cnats_flush(natsConnection *connection, int64_t milliseconds);
/// The most bytes of a message, its headers included.
int64_t cnats_max_payload(natsConnection *connection);
/// Stores the URL of the connected server.
bool cnats_url(natsConnection *connection, char *buffer, size_t size);

// MARK: - Messages

/// Publishes a message; may block for the write deadline when the server doesn't read.
///
/// `reply` may be NULL. `headers` are `headers_size` bytes: the keys, each with its value after it,
/// all with a NUL at the end.
natsStatus cnats_publish(
    natsConnection *connection, const char *subject, const char *reply, const void *data,
    size_t count, const char *headers, size_t headers_size);

natsStatus cnats_subscribe(
    natsConnection *connection, const char *subject, uint64_t context,
    natsSubscription **subscription);
/// Ends a subscription, and releases it.
void cnats_unsubscribe(natsSubscription *subscription);

const char *cnats_subject(natsMsg *message);
/// The subject for replies; NULL if there is none.
const char *cnats_reply(natsMsg *message);
const char *cnats_data(natsMsg *message, size_t *count);
/// The first value of a header; NULL if there is none.
const char *cnats_header(natsMsg *message, const char *key);

#endif
