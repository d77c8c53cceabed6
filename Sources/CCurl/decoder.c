// Decoding bodies by zlib, brotli and zstd, which libcurl uses as well. libcurl 7.88 doesn't: it takes a body that is cut
// short as a success, refuses a second member of gzip, and fails for an encoding that it doesn't know.
#include <brotli/decode.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "internal.h"

static struct {
  int (*inflateInit2_)(z_streamp stream, int bits, const char *version, int size);
  int (*inflate)(z_streamp stream, int flush);
  int (*inflateReset)(z_streamp stream);
  int (*inflateEnd)(z_streamp stream);
  BrotliDecoderState *(*BrotliDecoderCreateInstance)(
      brotli_alloc_func allocate, brotli_free_func release, void *context);
  BrotliDecoderResult (*BrotliDecoderDecompressStream)(
      BrotliDecoderState *state, size_t *available_in, const uint8_t **next_in,
      size_t *available_out, uint8_t **next_out, size_t *total);
  void (*BrotliDecoderDestroyInstance)(BrotliDecoderState *state);
  ZSTD_DStream *(*ZSTD_createDStream)(void);
  size_t (*ZSTD_decompressStream)(ZSTD_DStream *stream, ZSTD_outBuffer *out, ZSTD_inBuffer *in);
  unsigned (*ZSTD_isError)(size_t code);
  size_t (*ZSTD_freeDStream)(ZSTD_DStream *stream);
} library;

static bool has_zlib, has_brotli, has_zstd;

void ccurl_load_decoders(void) {
  void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  void *brotli = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
  void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
#define FIND(LIBRARY, NAME) ccurl_find(LIBRARY, #NAME, &library.NAME)
  has_zlib = zlib != NULL && FIND(zlib, inflateInit2_) && FIND(zlib, inflate)
      && FIND(zlib, inflateReset) && FIND(zlib, inflateEnd);
  has_brotli = brotli != NULL && FIND(brotli, BrotliDecoderCreateInstance)
      && FIND(brotli, BrotliDecoderDecompressStream) && FIND(brotli, BrotliDecoderDestroyInstance);
  has_zstd = zstd != NULL && FIND(zstd, ZSTD_createDStream) && FIND(zstd, ZSTD_decompressStream)
      && FIND(zstd, ZSTD_isError) && FIND(zstd, ZSTD_freeDStream);
#undef FIND
}

const char *ccurl_encodings(void) {
  // "deflate, gzip", ", br" and ", zstd" as far as they are there.
  static const char *const texts[] = {
      "identity", "deflate, gzip",       "br",       "deflate, gzip, br",
      "zstd",     "deflate, gzip, zstd", "br, zstd", "deflate, gzip, br, zstd",
  };
  return texts[has_zlib + 2 * has_brotli + 4 * has_zstd];
}

struct ccurl_decoder {
  enum { GZIP, DEFLATE, BROTLI, ZSTD } kind;
  z_stream zlib;
  BrotliDecoderState *brotli;
  ZSTD_DStream *zstd;
  /// Whether any byte has come; whether the last one ended the content, or a part of it that needs no other.
  bool has_begun;
  bool is_complete;
  /// Whether what follows is no part of the content.
  bool ignores_rest;
};

bool ccurl_decodes(const char *name, size_t count, int *kind) {
  static const struct {
    const char *name;
    int kind;
  } known[] = {
      {"gzip", GZIP}, {"x-gzip", GZIP}, {"deflate", DEFLATE}, {"br", BROTLI}, {"zstd", ZSTD},
  };
  const bool there[] = {
      [GZIP] = has_zlib, [DEFLATE] = has_zlib, [BROTLI] = has_brotli, [ZSTD] = has_zstd};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].name) != count || strncasecmp(known[i].name, name, count) != 0) continue;
    *kind = known[i].kind;
    return there[known[i].kind];
  }
  return false;
}

ccurl_decoder *ccurl_decoder_make(int kind) {
  ccurl_decoder *decoder = calloc(1, sizeof *decoder);
  if (decoder == NULL) return NULL;
  decoder->kind = kind;
  bool made = true;
  switch (decoder->kind) {
  // One with a header of gzip; the other's depends on the first byte.
  case GZIP:
    made = library.inflateInit2_(&decoder->zlib, 15 + 16, ZLIB_VERSION, sizeof(z_stream)) == Z_OK;
    break;
  case DEFLATE: break;
  case BROTLI:
    decoder->brotli = library.BrotliDecoderCreateInstance(NULL, NULL, NULL);
    made = decoder->brotli != NULL;
    break;
  case ZSTD:
    decoder->zstd = library.ZSTD_createDStream();
    made = decoder->zstd != NULL;
    break;
  }
  if (made) return decoder;
  free(decoder);
  return NULL;
}

void ccurl_decoder_free(ccurl_decoder *decoder) {
  switch (decoder->kind) {
  case GZIP:
  case DEFLATE:
    if (decoder->zlib.state != NULL) library.inflateEnd(&decoder->zlib);
    break;
  case BROTLI: library.BrotliDecoderDestroyInstance(decoder->brotli); break;
  case ZSTD: library.ZSTD_freeDStream(decoder->zstd); break;
  }
  free(decoder);
}

static ccurl_decoded inflate_part(ccurl_decoder *decoder, ccurl_part *part) {
  z_stream *stream = &decoder->zlib;
  if (decoder->kind == DEFLATE && stream->state == NULL) {
    if (part->count == 0) return CCURL_DECODED;
    // Some servers send the content without the header of zlib, whose first byte says method 8.
    int bits = (*part->bytes & 0xF) == 8 ? 15 : -15;
    if (library.inflateInit2_(stream, bits, ZLIB_VERSION, sizeof(z_stream)) != Z_OK)
      return CCURL_NO_MEMORY;
  }
  if (decoder->is_complete && part->count > 0) {
    // Another member of gzip, or padding.
    if (decoder->kind != GZIP || *part->bytes != 0x1F) {
      decoder->ignores_rest = true;
      part->count = 0;
      return CCURL_DECODED;
    }
    if (library.inflateReset(stream) != Z_OK) return CCURL_WRONG;
    decoder->is_complete = false;
  }
  uInt given = part->count > 1 << 30 ? 1 << 30 : (uInt)part->count;
  uInt room = part->room > 1 << 30 ? 1 << 30 : (uInt)part->room;
  stream->next_in = (Bytef *)part->bytes;
  stream->avail_in = given;
  stream->next_out = part->place;
  stream->avail_out = room;
  int result = library.inflate(stream, Z_NO_FLUSH);
  part->bytes += given - stream->avail_in;
  part->count -= given - stream->avail_in;
  part->made = room - stream->avail_out;
  switch (result) {
  case Z_STREAM_END: decoder->is_complete = true; return CCURL_DECODED;
  // No progress is possible: there was no byte, or no room.
  case Z_OK:
  case Z_BUF_ERROR: return CCURL_DECODED;
  case Z_MEM_ERROR: return CCURL_NO_MEMORY;
  default: return CCURL_WRONG;
  }
}

static ccurl_decoded brotli_part(ccurl_decoder *decoder, ccurl_part *part) {
  if (decoder->is_complete) {
    decoder->ignores_rest = true;
    part->count = 0;
    return CCURL_DECODED;
  }
  uint8_t *place = part->place;
  size_t room = part->room;
  BrotliDecoderResult result = library.BrotliDecoderDecompressStream(
      decoder->brotli, &part->count, &part->bytes, &room, &place, NULL);
  part->made = part->room - room;
  if (result == BROTLI_DECODER_RESULT_SUCCESS) decoder->is_complete = true;
  return result == BROTLI_DECODER_RESULT_ERROR ? CCURL_WRONG : CCURL_DECODED;
}

static ccurl_decoded zstd_part(ccurl_decoder *decoder, ccurl_part *part) {
  ZSTD_inBuffer in = {part->bytes, part->count, 0};
  ZSTD_outBuffer out = {part->place, part->room, 0};
  size_t result = library.ZSTD_decompressStream(decoder->zstd, &out, &in);
  if (library.ZSTD_isError(result)) return CCURL_WRONG;
  // Without a byte and without output it asks for the next frame.
  if (in.pos > 0 || out.pos > 0) decoder->is_complete = result == 0;
  part->bytes += in.pos;
  part->count -= in.pos;
  part->made = out.pos;
  return CCURL_DECODED;
}

ccurl_decoded ccurl_decode(ccurl_decoder *decoder, ccurl_part *part) {
  part->made = 0;
  if (part->count > 0) decoder->has_begun = true;
  if (decoder->ignores_rest) {
    part->count = 0;
    return CCURL_DECODED;
  }
  switch (decoder->kind) {
  case BROTLI: return brotli_part(decoder, part);
  case ZSTD: return zstd_part(decoder, part);
  default: return inflate_part(decoder, part);
  }
}

bool ccurl_decoder_is_complete(const ccurl_decoder *decoder) {
  return decoder->is_complete || !decoder->has_begun;
}
