// Files: calls that Swift's Glibc module lacks, changes in folders, and digests and encryption by OpenSSL.
#ifndef FLOWSYSTEM_FILES_H
#define FLOWSYSTEM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Copies up to `count` bytes between the positions of two regular files, without passing them
/// through this process where the kernel can. Returns the number of bytes, 0 at the end, or -1 with errno set.
ptrdiff_t flowsystem_copy_range(int from, int to, size_t count);

/// Finds the next part of a file that isn't a hole, from a place on: its start, and its end, negative if that isn't known.
/// Returns false when the rest is a hole, or there is none.
bool flowsystem_next_part(int fd, int64_t place, int64_t *start, int64_t *end);

/// Gives an open file the extended attributes that a file has, as far as that is permitted; with_access: also the list of who
/// has access.
void flowsystem_copy_attributes(const char *from, int to, bool with_access);

/// Returns the number of the type of the file system of a path, as <linux/magic.h> lists them, or -1
/// with errno set.
int64_t flowsystem_file_system(const char *path);

/// Returns the name of an errno, such as "ENOENT"; NULL for an unknown number.
const char *flowsystem_error_name(int number);

/// Whether the process may open one more file. Where it may not, dlopen fails as for a missing library, and inotify as at
/// a limit of its own. Any thread.
bool flowsystem_has_descriptors(void);

// MARK: - Changes in folders. <sys/inotify.h> isn't in Glibc's module map.

/// The kinds of changes, as a set of bits.
enum {
  FLOWSYSTEM_CREATED = 1,
  FLOWSYSTEM_CHANGED = 2,
  FLOWSYSTEM_REMOVED = 4,
  FLOWSYSTEM_MOVED_FROM = 8,
  FLOWSYSTEM_MOVED_TO = 16,
  /// The entry is a folder.
  FLOWSYSTEM_FOLDER = 32,
  /// The watched folder itself was removed or moved.
  FLOWSYSTEM_GONE = 64,
  /// The folder isn't watched any more, and nothing follows about it.
  FLOWSYSTEM_ENDED = 128,
  /// Changes were lost.
  FLOWSYSTEM_OVERFLOW = 256,
};

/// A change in a watched folder.
typedef struct {
  /// The number of the folder's watch; -1 for an overflow.
  int watch;
  /// The kinds of the change.
  uint32_t kinds;
  /// A number that both ends of a move have in common; 0 for other changes.
  uint32_t cookie;
  /// The name of the entry in the folder, within the buffer; empty for a change of the folder.
  const uint8_t *name;
  size_t name_length;
} flowsystem_file_event;

/// Returns a close-on-exec, non-blocking inotify descriptor, or -1 with errno set.
int flowsystem_inotify(void);

/// Watches the entries of a folder. A link is followed only with `follows`. Returns the number of
/// the watch, or -1 with errno set.
int flowsystem_watch_folder(int inotify, const char *path, bool follows);

/// Ends the watch of a folder.
void flowsystem_unwatch_folder(int inotify, int watch);

/// Gets the change at `*offset` of a buffer that was read from an inotify descriptor, and moves
/// `*offset` to the next one. Returns false at the end.
bool flowsystem_next_file_event(
    const uint8_t *bytes, size_t count, size_t *offset, flowsystem_file_event *event);

// MARK: - Temporary files

/// A temporary file or folder that is removed when a signal ends the process.
typedef struct flowsystem_temporary flowsystem_temporary;

/// Notes one; NULL without memory. This and the next function are called by one thread at a time.
flowsystem_temporary *flowsystem_note_temporary(const char *path, bool is_folder);

/// Forgets one, which is removed or has another name now; NULL is allowed.
void flowsystem_forget_temporary(flowsystem_temporary *noted);

// MARK: - Digests

/// The algorithms.
typedef enum {
  FLOWSYSTEM_SHA256,
  FLOWSYSTEM_SHA512,
  FLOWSYSTEM_SHA1,
  FLOWSYSTEM_MD5,
} flowsystem_digest_algorithm;

/// The most bytes of a digest.
enum { FLOWSYSTEM_DIGEST_SIZE = 64 };

/// A digest that is being computed.
typedef struct flowsystem_digest flowsystem_digest;

/// Loads OpenSSL's libcrypto.so.3, once. Returns NULL, or the reason why that failed. Any thread.
const char *flowsystem_load_crypto(void);

/// Makes libcrypto.so.3, if it is loaded, keep at the exit what other threads may still use. To be called before any
/// library initializes it. Any thread.
void flowsystem_keep_crypto(void);

/// Begins a digest, after the library has been loaded; NULL when the library refuses that.
flowsystem_digest *flowsystem_digest_begin(flowsystem_digest_algorithm algorithm);

/// Adds bytes; returns false when the library fails.
bool flowsystem_digest_add(flowsystem_digest *digest, const void *bytes, size_t count);

/// Stores the digest and its size, and releases the object; returns false when the library fails.
/// With NULL for `bytes` the object is only released.
bool flowsystem_digest_end(flowsystem_digest *digest, uint8_t *bytes, unsigned int *count);

/// Makes a digest equal to another one that isn't finished; returns false when the library fails.
bool flowsystem_digest_copy(flowsystem_digest *digest, const flowsystem_digest *source);

/// Stores the digest and its size, and keeps the object for another flowsystem_digest_copy.
bool flowsystem_digest_finish(flowsystem_digest *digest, uint8_t *bytes, unsigned int *count);

// MARK: - Encryption, by OpenSSL's libcrypto: AES-256-GCM.

enum { FLOWSYSTEM_CIPHER_KEY = 32, FLOWSYSTEM_CIPHER_NONCE = 12, FLOWSYSTEM_CIPHER_TAG = 16 };

/// The arguments of both directions.
typedef struct {
  /// FLOWSYSTEM_CIPHER_KEY bytes.
  const uint8_t *key;
  /// FLOWSYSTEM_CIPHER_NONCE bytes: never the same ones for two texts with one key.
  const uint8_t *nonce;
  /// Bytes that aren't encrypted, but have to be the same in both directions.
  const uint8_t *bound;
  size_t bound_count;
} flowsystem_cipher;

/// Loads the library if it isn't; NULL, or a sentence that says why that isn't possible. May be called
/// from any thread; the functions below need its success.
const char *flowsystem_load_cipher(void);

/// Encrypts bytes into as many bytes, and FLOWSYSTEM_CIPHER_TAG bytes that prove their origin. Returns
/// false when the library fails.
bool flowsystem_encrypt(
    const flowsystem_cipher *cipher, const uint8_t *text, size_t count, uint8_t *sealed,
    uint8_t *tag);

/// The way back; returns false for another key or other bytes, and then `text` isn't to be used.
bool flowsystem_decrypt(
    const flowsystem_cipher *cipher, const uint8_t *sealed, size_t count, const uint8_t *tag,
    uint8_t *text);

#endif
