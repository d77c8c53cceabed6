internal import FlowEngine

/// How many jobs travel in one message. What a message costs is shared by its jobs, which matters while they are short;
/// but no machine may be without work meanwhile, and one long job must not delay many short ones.
struct RemotePacking {
  /// A message has jobs for so many nanoseconds.
  static let work: Int64 = 10_000_000
  private static let mostJobs = 128
  private static let mostBytes = 65_536
  /// So many messages at a time keep one worker busy: it executes one while the next one comes.
  private static let messagesPerWorker = 2

  /// What jobs took lately, in nanoseconds, by the names of their code.
  private var times: [ByteString: Int64] = [:]

  /// Notes what a job took.
  mutating func note(_ time: Int64, of code: ByteString) {
    guard time > 0 else { return }
    let time = min(time, Self.work * 1000)
    times[code] = times[code].map { max(1, ($0 * 7 + time) / 8) } ?? time
  }

  /// What is known of a job that is to be sent.
  struct Job {
    let code: ByteString
    let size: Int
    let isSmall: Bool
  }

  /// Divides jobs into messages, in their order. While all workers have work, short jobs at the end that don't fill a
  /// message aren't part of one: more may come until a worker needs them.
  ///
  /// - Parameters:
  ///   - jobs: The jobs, of which only those are taken that the messages have, and one more.
  ///   - count: How many these are.
  ///   - workers: How many workers the machines have that can execute them.
  ///   - underway: How many messages those machines have already, or are about to get.
  ///   - room: The most messages.
  ///   - isDue: Whether none of the jobs waits for others.
  /// - Returns: The places of each message's jobs.
  func messages(
    _ jobs: some Sequence<Job>, count: Int, workers: Int, underway: Int, room: Int = .max,
    isDue: Bool = false
  ) -> [Range<Int>] {
    let missing = max(0, max(1, workers) * Self.messagesPerWorker - underway)
    let share = missing > 0 ? (count + missing - 1) / missing : Self.mostJobs
    let most = max(1, min(share, Self.mostJobs))
    var messages: [Range<Int>] = []
    var begin = 0
    var (time, size) = (Int64(0), 0)
    var end = 0
    for job in jobs {
      let expected = job.isSmall ? times[job.code] ?? Self.work : Self.work
      let isFull =
        end - begin >= most || time + expected > Self.work || size + job.size > Self.mostBytes
      if end > begin, isFull {
        messages.append(begin..<end)
        if messages.count == room { return messages }
        (begin, time, size) = (end, 0, 0)
      }
      end += 1
      time += expected
      size += job.size
    }
    let mayWait =
      !isDue && missing == 0 && end - begin < most && time < Self.work
      && size < Self.mostBytes
    if begin < end, !mayWait { messages.append(begin..<end) }
    return messages
  }
}
