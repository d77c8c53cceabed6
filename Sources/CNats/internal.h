#ifndef CNATS_INTERNAL_H
#define CNATS_INTERNAL_H

#include <signal.h>

#include "CNats.h"

/// The functions of the library that are used, by their names in it.
struct cnats_library {
  natsStatus (*nats_Open)(int64_t spins);
  const char *(*nats_GetLastError)(natsStatus *status);
  const char *(*natsStatus_GetText)(natsStatus status);
  natsStatus (*natsOptions_Create)(natsOptions **options);
  void (*natsOptions_Destroy)(natsOptions *options);
  natsStatus (*natsOptions_SetServers)(natsOptions *options, const char **servers, int count);
  natsStatus (*natsOptions_SetName)(natsOptions *options, const char *name);
  natsStatus (*natsOptions_SetToken)(natsOptions *options, const char *token);
  natsStatus (*natsOptions_SetUserInfo)(
      natsOptions *options, const char *user, const char *password);
  natsStatus (*natsOptions_SetUserCredentialsFromFiles)(
      natsOptions *options, const char *jwt, const char *seed);
  natsStatus (*natsOptions_SetSecure)(natsOptions *options, bool secure);
  natsStatus (*natsOptions_LoadCATrustedCertificates)(natsOptions *options, const char *path);
  natsStatus (*natsOptions_LoadCertificatesChain)(
      natsOptions *options, const char *certificate, const char *key);
  natsStatus (*natsOptions_SetExpectedHostname)(natsOptions *options, const char *name);
  natsStatus (*natsOptions_SetTimeout)(natsOptions *options, int64_t milliseconds);
  natsStatus (*natsOptions_SetPingInterval)(natsOptions *options, int64_t milliseconds);
  natsStatus (*natsOptions_SetMaxPingsOut)(natsOptions *options, int count);
  natsStatus (*natsOptions_SetIOBufSize)(natsOptions *options, int size);
  natsStatus (*natsOptions_SetMaxReconnect)(natsOptions *options, int count);
  natsStatus (*natsOptions_SetReconnectWait)(natsOptions *options, int64_t milliseconds);
  natsStatus (*natsOptions_SetReconnectJitter)(natsOptions *options, int64_t plain, int64_t tls);
  natsStatus (*natsOptions_SetMaxPendingMsgs)(natsOptions *options, int count);
  natsStatus (*natsOptions_SetErrorHandler)(
      natsOptions *options, natsErrHandler handler, void *context);
  natsStatus (*natsOptions_SetClosedCB)(
      natsOptions *options, natsConnectionHandler handler, void *context);
  natsStatus (*natsOptions_SetDisconnectedCB)(
      natsOptions *options, natsConnectionHandler handler, void *context);
  natsStatus (*natsOptions_SetReconnectedCB)(
      natsOptions *options, natsConnectionHandler handler, void *context);
  natsStatus (*natsOptions_UseGlobalMessageDelivery)(natsOptions *options, bool global);
  natsStatus (*natsOptions_SetIgnoreDiscoveredServers)(natsOptions *options, bool ignores);
  natsStatus (*natsOptions_SetSendAsap)(natsOptions *options, bool prompt);
  natsStatus (*natsOptions_SetWriteDeadline)(natsOptions *options, int64_t milliseconds);
  natsStatus (*natsConnection_Connect)(natsConnection **connection, natsOptions *options);
  void (*natsConnection_Close)(natsConnection *connection);
  void (*natsConnection_Destroy)(natsConnection *connection);
  natsStatus (*natsConnection_FlushTimeout)(natsConnection *connection, int64_t milliseconds);
  natsStatus (*natsConnection_GetRTT)(natsConnection *connection, int64_t *nanoseconds);
  natsConnStatus (*natsConnection_Status)(natsConnection *connection);
  int64_t (*natsConnection_GetMaxPayload)(natsConnection *connection);
  natsStatus (*natsConnection_GetConnectedUrl)(
      natsConnection *connection, char *buffer, size_t size);
  natsStatus (*natsConnection_GetLastError)(natsConnection *connection, const char **text);
  natsStatus (*natsConnection_Publish)(
      natsConnection *connection, const char *subject, const void *data, int count);
  natsStatus (*natsConnection_PublishRequest)(
      natsConnection *connection, const char *subject, const char *reply, const void *data,
      int count);
  natsStatus (*natsConnection_PublishMsg)(natsConnection *connection, natsMsg *message);
  natsStatus (*natsConnection_Subscribe)(
      natsSubscription **subscription, natsConnection *connection, const char *subject,
      natsMsgHandler handler, void *context);
  natsStatus (*natsConnection_QueueSubscribe)(
      natsSubscription **subscription, natsConnection *connection, const char *subject,
      const char *queue, natsMsgHandler handler, void *context);
  natsStatus (*natsSubscription_Unsubscribe)(natsSubscription *subscription);
  natsStatus (*natsSubscription_SetPendingLimits)(
      natsSubscription *subscription, int messages, int bytes);
  void (*natsSubscription_Destroy)(natsSubscription *subscription);
  natsStatus (*natsMsg_Create)(
      natsMsg **message, const char *subject, const char *reply, const char *data, int count);
  void (*natsMsg_Destroy)(natsMsg *message);
  const char *(*natsMsg_GetSubject)(const natsMsg *message);
  const char *(*natsMsg_GetReply)(const natsMsg *message);
  const char *(*natsMsg_GetData)(const natsMsg *message);
  int (*natsMsg_GetDataLength)(const natsMsg *message);
  natsStatus (*natsMsgHeader_Add)(natsMsg *message, const char *key, const char *value);
  natsStatus (*natsMsgHeader_Keys)(natsMsg *message, const char ***keys, int *count);
  natsStatus (*natsMsgHeader_Values)(
      natsMsg *message, const char *key, const char ***values, int *count);
};

/// Filled by cnats_load.
extern struct cnats_library cnats_library;

/// The callbacks that cnats_set_events has set.
const cnats_events *cnats_used_events(void);

/// Keeps signals from the threads that a call starts; the caller passes the result to the second
/// function.
sigset_t cnats_block_signals(void);
void cnats_restore_signals(sigset_t before);
/// Begins calls that may write to a connection that the server has closed: SIGPIPE would end the process. Returns whether
/// that signal was pending.
bool cnats_begin_writing(sigset_t *before);
/// Ends such calls, and removes the signal that they have caused.
void cnats_end_writing(bool was_pending, sigset_t before);

#endif
