// libnats, opened when it is first needed: linking it would cost each start of a script some
// milliseconds, and most machines don't have it.
#ifndef CNATS_H
#define CNATS_H

#include <nats/nats.h>
#include <signal.h>
#include <stdbool.h>

// clang-format off
/// The functions of the library that are used.
#define CNATS_FUNCTIONS(X) \
  X(nats_Open) X(nats_GetLastError) X(natsStatus_GetText) X(natsOptions_Create) \
  X(natsOptions_Destroy) X(natsOptions_SetServers) X(natsOptions_SetName) \
  X(natsOptions_SetToken) X(natsOptions_SetUserInfo) X(natsOptions_SetSecure) \
  X(natsOptions_SetTimeout) X(natsOptions_SetPingInterval) X(natsOptions_SetMaxPingsOut) \
  X(natsOptions_SetIOBufSize) X(natsOptions_SetMaxReconnect) X(natsOptions_SetReconnectWait) \
  X(natsOptions_SetReconnectJitter) X(natsOptions_SetMaxPendingMsgs) \
  X(natsOptions_SetErrorHandler) X(natsOptions_SetClosedCB) X(natsOptions_SetDisconnectedCB) \
  X(natsOptions_SetReconnectedCB) X(natsOptions_UseGlobalMessageDelivery) \
  X(natsOptions_SetIgnoreDiscoveredServers) X(natsOptions_SetSendAsap) \
  X(natsOptions_SetWriteDeadline) X(natsConnection_Connect) X(natsConnection_Close) \
  X(natsConnection_Destroy) X(natsConnection_FlushTimeout) X(natsConnection_Status) \
  X(natsConnection_GetMaxPayload) X(natsConnection_GetConnectedUrl) X(natsConnection_Publish) \
  X(natsConnection_PublishRequest) \
  X(natsConnection_PublishMsg) X(natsConnection_Subscribe) X(natsSubscription_Unsubscribe) \
  X(natsSubscription_SetPendingLimits) X(natsSubscription_Destroy) X(natsMsg_Create) \
  X(natsMsg_Destroy) X(natsMsg_GetSubject) X(natsMsg_GetReply) X(natsMsg_GetData) \
  X(natsMsg_GetDataLength) X(natsMsgHeader_Add) X(natsMsgHeader_Get)
// clang-format on

/// Pointers to these functions, with the types that the library's header declares.
typedef struct cnats_library {
#define FIELD(NAME) __typeof__(&(NAME)) NAME;
  CNATS_FUNCTIONS(FIELD)
#undef FIELD
} cnats_library;

/// Opens the library, once for the process. Returns NULL, or a sentence that says why that isn't
/// possible. May be called from any thread.
const char *cnats_load(void);
/// The functions; of use only after the success of cnats_load.
const cnats_library *cnats_functions(void);

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
