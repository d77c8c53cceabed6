// Encryption by OpenSSL's libcrypto: AES-256-GCM. The library is loaded as for digests.
#include "CFlowSystem.h"

#include "internal.h"

#include <limits.h>
#include <pthread.h>

typedef struct evp_cipher evp_cipher;
typedef struct evp_cipher_ctx evp_cipher_ctx;
typedef struct engine engine;

// The functions of the library, by the names that they have there.
static struct {
  const evp_cipher *(*EVP_aes_256_gcm)(void);
  evp_cipher_ctx *(*EVP_CIPHER_CTX_new)(void);
  void (*EVP_CIPHER_CTX_free)(evp_cipher_ctx *);
  int (*EVP_CIPHER_CTX_ctrl)(evp_cipher_ctx *, int kind, int count, void *bytes);
  int (*EVP_CipherInit_ex)(
      evp_cipher_ctx *, const evp_cipher *, engine *, const unsigned char *key,
      const unsigned char *nonce, int encrypts);
  int (*EVP_CipherUpdate)(
      evp_cipher_ctx *, unsigned char *to, int *written, const unsigned char *from, int count);
  int (*EVP_CipherFinal_ex)(evp_cipher_ctx *, unsigned char *to, int *written);
} crypto;

// Kinds of EVP_CIPHER_CTX_ctrl.
enum { GET_TAG = 0x10, SET_TAG = 0x11 };

static const char *failure;

static void load(void) {
  failure = flowsystem_load_crypto();
  if (failure) return;
  bool is_complete = flowsystem_find_crypto("EVP_aes_256_gcm", &crypto.EVP_aes_256_gcm)
      && flowsystem_find_crypto("EVP_CIPHER_CTX_new", &crypto.EVP_CIPHER_CTX_new)
      && flowsystem_find_crypto("EVP_CIPHER_CTX_free", &crypto.EVP_CIPHER_CTX_free)
      && flowsystem_find_crypto("EVP_CIPHER_CTX_ctrl", &crypto.EVP_CIPHER_CTX_ctrl)
      && flowsystem_find_crypto("EVP_CipherInit_ex", &crypto.EVP_CipherInit_ex)
      && flowsystem_find_crypto("EVP_CipherUpdate", &crypto.EVP_CipherUpdate)
      && flowsystem_find_crypto("EVP_CipherFinal_ex", &crypto.EVP_CipherFinal_ex);
  if (!is_complete) failure = "libcrypto.so.3 has no AES-256-GCM";
}

const char *flowsystem_load_cipher(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return failure;
}

// Passes bytes through the cipher, in parts that the library's int can count; without `to` they are the
// data that is only authenticated.
static bool update(evp_cipher_ctx *context, uint8_t *to, const uint8_t *from, size_t count) {
  while (count > 0) {
    int part = count > (1 << 30) ? 1 << 30 : (int)count;
    int written = 0;
    if (crypto.EVP_CipherUpdate(context, to, &written, from, part) != 1) return false;
    from += part;
    if (to) to += part;
    count -= (size_t)part;
  }
  return true;
}

static bool pass(
    evp_cipher_ctx *context, bool encrypts, const flowsystem_cipher *cipher, const uint8_t *from,
    size_t count, uint8_t *to, uint8_t *tag) {
  uint8_t rest[16];
  int written = 0;
  if (crypto.EVP_CipherInit_ex(
          context, crypto.EVP_aes_256_gcm(), NULL, cipher->key, cipher->nonce, encrypts)
      != 1)
    return false;
  if (!update(context, NULL, cipher->bound, cipher->bound_count)) return false;
  if (!update(context, to, from, count)) return false;
  if (!encrypts && crypto.EVP_CIPHER_CTX_ctrl(context, SET_TAG, FLOWSYSTEM_CIPHER_TAG, tag) != 1)
    return false;
  if (crypto.EVP_CipherFinal_ex(context, rest, &written) != 1) return false;
  return !encrypts || crypto.EVP_CIPHER_CTX_ctrl(context, GET_TAG, FLOWSYSTEM_CIPHER_TAG, tag) == 1;
}

bool flowsystem_encrypt(
    const flowsystem_cipher *cipher, const uint8_t *text, size_t count, uint8_t *sealed,
    uint8_t *tag) {
  evp_cipher_ctx *context = crypto.EVP_CIPHER_CTX_new();
  if (!context) return false;
  bool is_done = pass(context, true, cipher, text, count, sealed, tag);
  crypto.EVP_CIPHER_CTX_free(context);
  return is_done;
}

bool flowsystem_decrypt(
    const flowsystem_cipher *cipher, const uint8_t *sealed, size_t count, const uint8_t *tag,
    uint8_t *text) {
  evp_cipher_ctx *context = crypto.EVP_CIPHER_CTX_new();
  if (!context) return false;
  // The library wants to be able to write it.
  uint8_t copy[FLOWSYSTEM_CIPHER_TAG];
  for (size_t i = 0; i < sizeof copy; i++) copy[i] = tag[i];
  bool is_done = pass(context, false, cipher, sealed, count, text, copy);
  crypto.EVP_CIPHER_CTX_free(context);
  return is_done;
}
