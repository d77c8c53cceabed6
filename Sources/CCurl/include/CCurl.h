// libcurl, opened when it is first needed: linking it would cost each start of a script 5 ms.
//
// Swift can't call functions with variable arguments, such as curl_easy_setopt, and the library's
// callbacks are kept in C: they only convert their arguments for the functions of a table.
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Opens the library, once for the process. Returns NULL, or a sentence that says why that isn't
/// possible. May be called from any thread; every other function needs its success.
const char *ccurl_load(void);

/// Seconds since 1970 of a date as headers have it; -1 for another text.
int64_t ccurl_date(const char *text);

/// The callbacks of a transfer. None of them may call a function of this header.
typedef struct ccurl_transfer_events {
  /// A line of the response's header, with its end. Returns false to end the transfer.
  bool (*header)(void *context, const char *line, size_t count);
  /// A part of the body. Returns its size, CURL_WRITEFUNC_PAUSE, or another number to end the
  /// transfer.
  size_t (*receive)(void *context, const char *bytes, size_t count);
  /// Stores the next bytes of a streamed body. Returns their number, 0 at the end, or
  /// CURL_READFUNC_ABORT.
  size_t (*send)(void *context, char *buffer, size_t room);
  /// Continues a streamed body at a position. Returns whether that is possible.
  bool (*seek)(void *context, int64_t position);
  /// Bytes of the body moved: those of the response and its size (0 if unknown), then those of the
  /// request.
  void (*moved)(void *context, int64_t received, int64_t total, int64_t sent, int64_t size);
} ccurl_transfer_events;

/// The callbacks of a loop's transfers. None of them may call a function of this header.
typedef struct ccurl_loop_events {
  /// Watch a descriptor for these; for neither of them: no longer.
  void (*watch)(void *context, int descriptor, bool reading, bool writing);
  /// Call ccurl_multi_time after this many milliseconds; negative: not at all.
  void (*wake)(void *context, long milliseconds);
  /// The descriptor of a connection is about to be closed. libcurl 7.88 says so only of those that have been
  /// connected.
  void (*closing)(void *context, int descriptor);
} ccurl_loop_events;

/// One request and its response. libcurl 7.88 keeps a pointer to the last header line of a transfer that
/// is used again, and releases that line twice when the next response begins with a folded line.
typedef struct ccurl_easy ccurl_easy;
/// All transfers of a loop, and their connections.
typedef struct ccurl_multi ccurl_multi;

/// Makes a transfer for a multi, with the options that every request has; NULL without memory.
ccurl_easy *ccurl_easy_make(ccurl_multi *multi, const ccurl_transfer_events *events, void *context);
/// Has `send`, `seek` and `moved` called, which a request without a body doesn't need.
void ccurl_follow_body(ccurl_easy *easy);
/// Releases a transfer that no multi has.
void ccurl_easy_free(ccurl_easy *easy);

/// Sets an option that is a text of so many bytes; CURLE_OUT_OF_MEMORY for one with a NUL byte, too.
CURLcode ccurl_set_text(ccurl_easy *easy, CURLoption option, const void *text, size_t count);
CURLcode ccurl_set_number(ccurl_easy *easy, CURLoption option, long number);
/// Sets an option that is a size.
CURLcode ccurl_set_size(ccurl_easy *easy, CURLoption option, int64_t size);
/// Sets the body of a request; it is copied.
CURLcode ccurl_set_body(ccurl_easy *easy, const void *bytes, size_t count);
/// Has a request say who sends it.
CURLcode ccurl_set_agent(ccurl_easy *easy);
/// Asks for a body in one of the encodings that a ccurl_decoder knows.
bool ccurl_ask_for_encodings(ccurl_easy *easy);
/// Does both for a request that gets no other line and goes through no proxy: a proxy that opens a
/// tunnel wouldn't get the lines.
///
/// libcurl 7.88 writes the line of an option character by character, twice for each request; a line
/// that is given it writes once. That took 5 % of a request's instructions.
CURLcode ccurl_set_usual_lines(ccurl_easy *easy);
/// Adds a line to the header of a request.
bool ccurl_add_header(ccurl_easy *easy, const char *line);
/// Adds a part to a multipart body: the content of a file, or bytes when `path` is NULL. `type` and
/// `filename` may be NULL.
bool ccurl_add_part(
    ccurl_easy *easy, const char *name, const char *path, const void *bytes, size_t count,
    const char *type, const char *filename);
/// Uses a jar, whose cookies are sent and which keeps those that come. NULL: no cookies.
CURLcode ccurl_set_jar(ccurl_easy *easy, CURLSH *jar);

int64_t ccurl_number(ccurl_easy *easy, CURLINFO info);
/// A size, or a time in microseconds.
int64_t ccurl_size(ccurl_easy *easy, CURLINFO info);
/// The message of the last failure; empty if there is none.
const char *ccurl_problem(ccurl_easy *easy);
/// Whether a socket couldn't be made because the process has no descriptors left.
bool ccurl_lacks_descriptor(ccurl_easy *easy);
/// The library's own text for a failure.
const char *ccurl_text(CURLcode code);
/// Continues a paused transfer; may call `receive`.
CURLcode ccurl_continue(ccurl_easy *easy);

/// Decodes one body.
typedef struct ccurl_decoder ccurl_decoder;

/// Whether there is a decoder for an encoding, by the name that a header gives it, and which one.
bool ccurl_decodes(const char *name, size_t count, int *kind);
/// Makes a decoder; NULL without memory.
ccurl_decoder *ccurl_decoder_make(int kind);
void ccurl_decoder_free(ccurl_decoder *decoder);

/// Bytes to decode, and a place for the result.
typedef struct ccurl_part {
  /// Those that are left afterwards.
  const uint8_t *bytes;
  size_t count;
  uint8_t *place;
  size_t room;
  /// How many have been stored. If all of the room was needed, there may be more, also without further bytes.
  size_t made;
} ccurl_part;

typedef enum ccurl_decoded { CCURL_DECODED, CCURL_WRONG, CCURL_NO_MEMORY } ccurl_decoded;
ccurl_decoded ccurl_decode(ccurl_decoder *decoder, ccurl_part *part);
/// Whether no byte is missing at the end.
bool ccurl_decoder_is_complete(const ccurl_decoder *decoder);

CURLSH *ccurl_jar_make(void);
void ccurl_jar_free(CURLSH *jar);

/// Makes the transfers of a loop, with limits for the connections in use and those kept.
ccurl_multi *ccurl_multi_make(
    const ccurl_loop_events *events, void *context, long connections, long kept);
/// Closes all connections; no transfer may be left.
void ccurl_multi_free(ccurl_multi *multi);
bool ccurl_multi_add(ccurl_multi *multi, ccurl_easy *easy);
void ccurl_multi_remove(ccurl_multi *multi, ccurl_easy *easy);
/// Continues what waits for a descriptor.
void ccurl_multi_ready(ccurl_multi *multi, int descriptor, bool reading, bool writing);
/// Continues what waits for a time.
void ccurl_multi_time(ccurl_multi *multi);
/// The context of a transfer that has ended, and its code; NULL when there is none.
void *ccurl_multi_next(ccurl_multi *multi, CURLcode *code);

/// The parts of a URL, each NULL if it isn't there.
typedef struct ccurl_url {
  /// The whole URL, without user, password and fragment.
  char *url;
  char *scheme, *host, *port;
  /// Decoded.
  char *user, *password;
} ccurl_url;

/// Reads a URL, relative to `base` unless that is NULL; `encodes` has spaces and other bytes encoded,
/// instead of refused. Returns NULL, or the library's text about the mistake. ccurl_url_free
/// releases the parts in any case.
const char *ccurl_url_read(const char *base, const char *text, bool encodes, ccurl_url *url);
void ccurl_url_free(ccurl_url *url);

#endif
