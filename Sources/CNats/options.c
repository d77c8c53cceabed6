// The options of connections.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
  /// The limit for one server, in milliseconds.
  CONNECT_TIMEOUT = 5000,
  PING_INTERVAL = 2000,
  PINGS_OUT = 2,
  RECONNECT_WAIT = 250,
  RECONNECT_JITTER = 100,
  WRITE_DEADLINE = 2000,
  /// The size of each of the buffers for reading and writing.
  BUFFER_SIZE = 1 << 18,
  /// How many messages wait for a subscription's thread, which only passes them on.
  PENDING_MESSAGES = 1 << 20,
  MOST_SERVERS = 64,
};

static _Atomic(const cnats_events *) used_events;

void cnats_set_events(const cnats_events *events) { atomic_store(&used_events, events); }

const cnats_events *cnats_used_events(void) { return atomic_load(&used_events); }

static void *from_context(uint64_t context) { return (void *)(uintptr_t)context; }

static uint64_t to_context(void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void was_disconnected(natsConnection *connection, void *context) {
  (void)connection;
  cnats_used_events()->changed(to_context(context), CNATS_DISCONNECTED);
}

static void was_reconnected(natsConnection *connection, void *context) {
  (void)connection;
  cnats_used_events()->changed(to_context(context), CNATS_RECONNECTED);
}

static void was_closed(natsConnection *connection, void *context) {
  (void)connection;
  cnats_used_events()->changed(to_context(context), CNATS_CLOSED);
}

static void has_failed(
    natsConnection *connection, natsSubscription *subscription, natsStatus status, void *context) {
  (void)subscription;
  const char *text = NULL;
  cnats_library.natsConnection_GetLastError(connection, &text);
  cnats_used_events()->failed(to_context(context), status, text == NULL ? "" : text);
}

natsOptions *cnats_options_make(uint64_t context, bool is_secure) {
  natsOptions *options = NULL;
  if (cnats_library.natsOptions_Create(&options) != NATS_OK) return NULL;
  void *pointer = from_context(context);
  struct cnats_library *nats = &cnats_library;
  const natsStatus codes[] = {
      nats->natsOptions_SetTimeout(options, CONNECT_TIMEOUT),
      nats->natsOptions_SetMaxReconnect(options, -1),
      nats->natsOptions_SetReconnectWait(options, RECONNECT_WAIT),
      nats->natsOptions_SetReconnectJitter(options, RECONNECT_JITTER, RECONNECT_JITTER),
      nats->natsOptions_SetPingInterval(options, PING_INTERVAL),
      nats->natsOptions_SetMaxPingsOut(options, PINGS_OUT),
      nats->natsOptions_SetWriteDeadline(options, WRITE_DEADLINE),
      nats->natsOptions_SetIOBufSize(options, BUFFER_SIZE),
      nats->natsOptions_SetMaxPendingMsgs(options, PENDING_MESSAGES),
      // Each message by a call of the system of its own, not up to a millisecond later.
      nats->natsOptions_SetSendAsap(options, true),
      // One thread for all subscriptions: messages keep their order among them.
      nats->natsOptions_UseGlobalMessageDelivery(options, true),
      // A server that was checked to be on this computer may announce others of its cluster that aren't.
      nats->natsOptions_SetIgnoreDiscoveredServers(options, !is_secure),
      nats->natsOptions_SetErrorHandler(options, has_failed, pointer),
      nats->natsOptions_SetClosedCB(options, was_closed, pointer),
      nats->natsOptions_SetDisconnectedCB(options, was_disconnected, pointer),
      nats->natsOptions_SetReconnectedCB(options, was_reconnected, pointer),
      is_secure ? nats->natsOptions_SetSecure(options, true) : NATS_OK,
  };
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    if (codes[i] == NATS_OK) continue;
    nats->natsOptions_Destroy(options);
    return NULL;
  }
  return options;
}

void cnats_options_free(natsOptions *options) { cnats_library.natsOptions_Destroy(options); }

static natsStatus set_servers(natsOptions *options, const char *urls) {
  char *copy = strdup(urls);
  if (copy == NULL) return NATS_NO_MEMORY;
  const char *servers[MOST_SERVERS];
  int count = 0;
  char *rest = copy;
  for (char *url; count < MOST_SERVERS && (url = strsep(&rest, ",")) != NULL;) {
    servers[count] = url;
    count++;
  }
  natsStatus status = cnats_library.natsOptions_SetServers(options, servers, count);
  free(copy);
  return status;
}

natsStatus cnats_set(
    natsOptions *options, cnats_option option, const char *text, const char *password) {
  switch (option) {
  case CNATS_SERVERS: return set_servers(options, text);
  case CNATS_NAME: return cnats_library.natsOptions_SetName(options, text);
  case CNATS_TOKEN: return cnats_library.natsOptions_SetToken(options, text);
  case CNATS_USER: return cnats_library.natsOptions_SetUserInfo(options, text, password);
  }
  return NATS_INVALID_ARG;
}
