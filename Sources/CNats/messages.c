// Messages, and subscriptions to them.
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
  /// How many messages wait for their destruction at most, and how many bytes their data has.
  MOST_DONE = 64,
  MOST_DONE_BYTES = 1 << 16,
};

/// The messages that have no further use.
static struct {
  pthread_mutex_t lock;
  natsMsg *list[MOST_DONE];
  size_t count, bytes;
} done = {.lock = PTHREAD_MUTEX_INITIALIZER};

/// Destroys a message, with others. The library frees messages on a thread of its own and wakes that thread for each
/// one, which took a twentieth of the time of an op on another node.
static void discard(natsMsg *message) {
  natsMsg *list[MOST_DONE];
  size_t count = 0;
  int size = cnats_library.natsMsg_GetDataLength(message);
  pthread_mutex_lock(&done.lock);
  done.list[done.count++] = message;
  done.bytes += size > 0 ? (size_t)size : 0;
  if (done.count == MOST_DONE || done.bytes > MOST_DONE_BYTES) {
    count = done.count;
    memcpy(list, done.list, count * sizeof list[0]);
    done.count = done.bytes = 0;
  }
  pthread_mutex_unlock(&done.lock);
  for (size_t i = 0; i < count; i++) cnats_library.natsMsg_Destroy(list[i]);
}

static natsStatus add_headers(natsMsg *message, const char *headers, size_t size) {
  const char *next = headers, *end = headers + size;
  while (next < end) {
    const char *key = next;
    const char *value = key + strnlen(key, (size_t)(end - key)) + 1;
    if (value >= end) return NATS_INVALID_ARG;
    next = value + strnlen(value, (size_t)(end - value)) + 1;
    if (next > end) return NATS_INVALID_ARG;
    natsStatus status = cnats_library.natsMsgHeader_Add(message, key, value);
    if (status != NATS_OK) return status;
  }
  return NATS_OK;
}

static natsStatus publish(
    natsConnection *connection, const char *subject, const char *reply, const void *data,
    size_t count, const char *headers, size_t headers_size) {
  if (count > INT_MAX) return NATS_MAX_PAYLOAD;
  int size = (int)count;
  if (headers_size == 0 && reply == NULL) {
    return cnats_library.natsConnection_Publish(connection, subject, data, size);
  }
  if (headers_size == 0) {
    return cnats_library.natsConnection_PublishRequest(connection, subject, reply, data, size);
  }
  natsMsg *message = NULL;
  natsStatus status = cnats_library.natsMsg_Create(&message, subject, reply, data, size);
  if (status != NATS_OK) return status;
  status = add_headers(message, headers, headers_size);
  if (status == NATS_OK) status = cnats_library.natsConnection_PublishMsg(connection, message);
  discard(message);
  return status;
}

natsStatus cnats_publish(
    natsConnection *connection, const char *subject, const char *reply, const void *data,
    size_t count, const char *headers, size_t headers_size) {
  sigset_t before;
  bool was_pending = cnats_begin_writing(&before);
  natsStatus status = publish(connection, subject, reply, data, count, headers, headers_size);
  cnats_end_writing(was_pending, before);
  return status;
}

static void receive_one(
    natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *context) {
  (void)connection;
  (void)subscription;
  cnats_used_events()->received((uint64_t)(uintptr_t)context, message);
  discard(message);
}

natsStatus cnats_subscribe(
    natsConnection *connection, const char *subject, uint64_t context,
    natsSubscription **subscription) {
  *subscription = NULL;
  void *pointer = (void *)(uintptr_t)context;
  // The first subscription starts the thread that delivers.
  sigset_t unpiped, before;
  bool was_pending = cnats_begin_writing(&unpiped);
  before = cnats_block_signals();
  natsStatus status = cnats_library.natsConnection_Subscribe(
      subscription, connection, subject, receive_one, pointer);
  cnats_restore_signals(before);
  cnats_end_writing(was_pending, unpiped);
  if (status == NATS_OK) {
    // No limit of the library: messages only pass through.
    cnats_library.natsSubscription_SetPendingLimits(*subscription, -1, -1);
  }
  return status;
}

void cnats_unsubscribe(natsSubscription *subscription) {
  sigset_t before;
  bool was_pending = cnats_begin_writing(&before);
  cnats_library.natsSubscription_Unsubscribe(subscription);
  cnats_library.natsSubscription_Destroy(subscription);
  cnats_end_writing(was_pending, before);
}

const char *cnats_subject(natsMsg *message) {
  const char *subject = cnats_library.natsMsg_GetSubject(message);
  return subject == NULL ? "" : subject;
}

const char *cnats_reply(natsMsg *message) {
  const char *reply = cnats_library.natsMsg_GetReply(message);
  return reply == NULL || reply[0] == '\0' ? NULL : reply;
}

const char *cnats_data(natsMsg *message, size_t *count) {
  int size = cnats_library.natsMsg_GetDataLength(message);
  *count = size > 0 ? (size_t)size : 0;
  return cnats_library.natsMsg_GetData(message);
}

const char *cnats_header(natsMsg *message, const char *key) {
  const char *value = NULL;
  return cnats_library.natsMsgHeader_Get(message, key, &value) == NATS_OK ? value : NULL;
}
