// Connections.
#include "internal.h"

/// How long the end of a connection waits for its last messages, in milliseconds.
enum { LAST_FLUSH = 900 };

natsStatus cnats_connect(natsOptions *options, natsConnection **connection) {
  *connection = NULL;
  sigset_t before = cnats_block_signals();
  natsStatus status = cnats_library.natsConnection_Connect(connection, options);
  cnats_restore_signals(before);
  return status;
}

void cnats_close(natsConnection *connection) {
  // The library would close the socket at once: what the server hasn't read may be lost then.
  natsConnStatus status = cnats_library.natsConnection_Status(connection);
  if (status == NATS_CONN_STATUS_CONNECTED) cnats_flush(connection, LAST_FLUSH);
  cnats_library.natsConnection_Close(connection);
}

void cnats_destroy(natsConnection *connection) { cnats_library.natsConnection_Destroy(connection); }

natsStatus cnats_flush(natsConnection *connection, int64_t milliseconds) {
  sigset_t before;
  bool was_pending = cnats_begin_writing(&before);
  natsStatus status = cnats_library.natsConnection_FlushTimeout(connection, milliseconds);
  cnats_end_writing(was_pending, before);
  return status;
}

int64_t cnats_max_payload(natsConnection *connection) {
  return cnats_library.natsConnection_GetMaxPayload(connection);
}

bool cnats_url(natsConnection *connection, char *buffer, size_t size) {
  if (size == 0) return false;
  buffer[0] = '\0';
  return cnats_library.natsConnection_GetConnectedUrl(connection, buffer, size) == NATS_OK;
}
