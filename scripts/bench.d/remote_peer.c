// The work of ops on other nodes, which scripts/bench measures, by hand with libnats: a stream of items, from which
// two processes pull batches, a stream of results, and a stream with the parts of a file.
//
//   remote_peer items URL COUNT   items that do nothing: prints the microseconds of each
//   remote_peer trip URL COUNT    one item at a time: prints the microseconds of each
//   remote_peer file URL FILE TO  a file to the server and back, with its SHA-256: prints the milliseconds
#include <nats/nats.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  WORKERS = 2,
  BATCH = 256,
  // Of an item that has no data.
  ITEM = 128,
  PART = 1 << 17,
  // Milliseconds until something has gone wrong.
  LONG = 60000,
};

static natsConnection *connection;
static jsCtx *streams;

static void check(natsStatus status, const char *what) {
  if (status == NATS_OK) return;
  fprintf(
      stderr, "remote_peer: %s: %s: %s\n", what, natsStatus_GetText(status),
      nats_GetLastError(NULL));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void connect_to(const char *url, bool sends_at_once) {
  natsOptions *options = NULL;
  jsOptions settings;
  check(natsOptions_Create(&options), "options");
  check(natsOptions_SetURL(options, url), "the URL");
  // Otherwise messages wait a little for others.
  check(natsOptions_SetSendAsap(options, sends_at_once), "options");
  check(natsConnection_Connect(&connection, options), "connect");
  natsOptions_Destroy(options);
  check(jsOptions_Init(&settings), "options");
  settings.PublishAsync.MaxPending = 4096;
  check(natsConnection_JetStream(&streams, connection, &settings), "JetStream");
}

// A new stream, of which each message is for one reader.
static void make_stream(const char *name, const char *subject, bool is_queue) {
  jsStreamConfig config;
  jsErrCode code = 0;
  js_DeleteStream(streams, name, NULL, &code);
  check(jsStreamConfig_Init(&config), "a stream");
  config.Name = name;
  config.Subjects = (const char *[]){subject};
  config.SubjectsLen = 1;
  if (is_queue) config.Retention = js_WorkQueuePolicy;
  check(js_AddStream(NULL, streams, &config, NULL, &code), name);
}

// Takes messages from a consumer, of which so many are on their way. natsSubscription_Fetch of libnats 3.4.1 writes
// beyond the end of its list when messages come late.
struct puller {
  natsSubscription *messages;
  char request[128], inbox[64];
  int demanded;
};

static void demand(struct puller *puller, int count) {
  char text[64];
  int length =
      snprintf(text, sizeof text, "{\"batch\":%d,\"expires\":%lld}", count, LONG * 1000000LL);
  check(
      natsConnection_PublishRequest(connection, puller->request, puller->inbox, text, length),
      "demand");
  puller->demanded += count;
}

static void pull(struct puller *puller, const char *stream, const char *consumer, int count) {
  jsConsumerConfig config;
  jsErrCode code = 0;
  check(jsConsumerConfig_Init(&config), "a consumer");
  config.Durable = consumer;
  config.AckPolicy = js_AckExplicit;
  config.MaxAckPending = 100000;
  check(js_AddConsumer(NULL, streams, stream, &config, NULL, &code), consumer);
  snprintf(
      puller->request, sizeof puller->request, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", stream, consumer);
  snprintf(puller->inbox, sizeof puller->inbox, "inbox.%s.%d", consumer, (int)getpid());
  check(natsConnection_SubscribeSync(&puller->messages, connection, puller->inbox), "subscribe");
  puller->demanded = 0;
  demand(puller, count);
}

// Waits for messages; returns how many there are, at most BATCH.
static int take(struct puller *puller, natsMsg **list, int batch) {
  int count = 0, waiting = 1;
  while (count < BATCH && waiting > 0) {
    natsMsg *message = NULL;
    check(natsSubscription_NextMsg(&message, puller->messages, LONG), "take");
    list[count++] = message;
    puller->demanded--;
    check(natsSubscription_GetPending(puller->messages, &waiting, NULL), "take");
  }
  if (puller->demanded <= batch / 2) demand(puller, batch - puller->demanded);
  return count;
}

static void acknowledge(natsMsg **list, int count) {
  for (int i = 0; i < count; i++) {
    check(natsConnection_PublishString(connection, natsMsg_GetReply(list[i]), "+ACK"), "ack");
    natsMsg_Destroy(list[i]);
  }
}

static void finish_publishing(void) { check(js_PublishAsyncComplete(streams, NULL), "publish"); }

// Sends a result for each item; an item may be forgotten once its result is stored.
static void work(const char *url, bool is_trip) {
  natsMsg *list[BATCH];
  struct puller items;
  int batch = is_trip ? 1 : BATCH;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  connect_to(url, is_trip);
  pull(&items, "PEER_WORK", "workers", batch);
  while (true) {
    int count = take(&items, list, batch);
    for (int i = 0; i < count; i++) {
      check(
          js_PublishAsync(
              streams, "peer.news", natsMsg_GetData(list[i]), natsMsg_GetDataLength(list[i]), NULL),
          "publish");
    }
    finish_publishing();
    acknowledge(list, count);
  }
}

struct collection {
  struct puller results;
  long count;
};

static void *collect(void *argument) {
  struct collection *collection = argument;
  natsMsg *list[BATCH];
  while (collection->count > 0) {
    int count = take(&collection->results, list, BATCH);
    acknowledge(list, count);
    collection->count -= count;
  }
  return NULL;
}

static void run_items(long count) {
  struct collection collection = {.count = count};
  char item[ITEM];
  pthread_t thread;
  pull(&collection.results, "PEER_NEWS", "script", BATCH);
  memset(item, 'x', sizeof item);
  double began = now();
  pthread_create(&thread, NULL, collect, &collection);
  for (long i = 0; i < count; i++) {
    check(js_PublishAsync(streams, "peer.work", item, sizeof item, NULL), "publish");
  }
  pthread_join(thread, NULL);
  printf("%g\n", (now() - began) / (double)count);
}

static void run_trips(long count) {
  struct puller results;
  natsMsg *list[BATCH];
  char item[ITEM];
  pull(&results, "PEER_NEWS", "script", 1);
  memset(item, 'x', sizeof item);
  double began = 0;
  // The first ones prepare what all have in common.
  for (long i = -20; i < count; i++) {
    if (i == 0) began = now();
    check(js_PublishAsync(streams, "peer.work", item, sizeof item, NULL), "publish");
    acknowledge(list, take(&results, list, 1));
  }
  printf("%g\n", (now() - began) / (double)count);
}

static FILE *open_file(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) {
    perror(path);
    exit(1);
  }
  return file;
}

// Reads and hashes the file, sends its parts, receives them, and hashes and writes them.
static void run_file(const char *from, const char *to) {
  static char part[PART];
  unsigned char sent[EVP_MAX_MD_SIZE], received[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  long parts = 0;
  size_t size = 0;
  make_stream("PEER_FILE", "peer.file", false);
  double began = now();
  EVP_MD_CTX *digest = EVP_MD_CTX_new();
  EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
  FILE *file = open_file(from, "rb");
  for (; (size = fread(part, 1, sizeof part, file)) > 0; parts++) {
    EVP_DigestUpdate(digest, part, size);
    check(js_PublishAsync(streams, "peer.file", part, (int)size, NULL), "publish");
  }
  fclose(file);
  EVP_DigestFinal_ex(digest, sent, &length);
  finish_publishing();

  jsSubOptions settings;
  natsSubscription *all = NULL;
  check(jsSubOptions_Init(&settings), "options");
  settings.Ordered = true;
  check(js_SubscribeSync(&all, streams, "peer.file", NULL, &settings, NULL), "subscribe");
  check(natsSubscription_SetPendingLimits(all, -1, -1), "limits");
  EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
  file = open_file(to, "wb");
  for (; parts > 0; parts--) {
    natsMsg *message = NULL;
    check(natsSubscription_NextMsg(&message, all, LONG), "receive");
    size = (size_t)natsMsg_GetDataLength(message);
    EVP_DigestUpdate(digest, natsMsg_GetData(message), size);
    if (fwrite(natsMsg_GetData(message), 1, size, file) != size) perror(to);
    natsMsg_Destroy(message);
  }
  fclose(file);
  EVP_DigestFinal_ex(digest, received, &length);
  if (memcmp(sent, received, length) != 0) fprintf(stderr, "remote_peer: another content\n");
  printf("%g\n", (now() - began) / 1e3);
  js_DeleteStream(streams, "PEER_FILE", NULL, NULL);
}

int main(int count, char **words) {
  if (count < 4) return 2;
  const char *kind = words[1], *url = words[2];
  if (strcmp(kind, "file") == 0) {
    if (count != 5) return 2;
    connect_to(url, false);
    run_file(words[3], words[4]);
    return 0;
  }
  bool is_trip = strcmp(kind, "trip") == 0;
  pid_t workers[WORKERS];
  int ready[2];
  char byte = 0;
  if (pipe(ready) != 0) return 1;
  // Before the library has threads here; they wait until the streams are there.
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = fork();
    if (workers[i] == 0) {
      if (read(ready[0], &byte, 1) == 1) work(url, is_trip);
      _exit(1);
    }
  }
  connect_to(url, is_trip);
  make_stream("PEER_WORK", "peer.work", true);
  make_stream("PEER_NEWS", "peer.news", true);
  for (int i = 0; i < WORKERS; i++) {
    if (write(ready[1], "x", 1) != 1) return 1;
  }
  // They connect.
  usleep(300000);
  long number = strtol(words[3], NULL, 10);
  if (is_trip) run_trips(number);
  else run_items(number);
  for (int i = 0; i < WORKERS; i++) {
    kill(workers[i], SIGKILL);
    waitpid(workers[i], NULL, 0);
  }
  js_DeleteStream(streams, "PEER_WORK", NULL, NULL);
  js_DeleteStream(streams, "PEER_NEWS", NULL, NULL);
  return 0;
}
