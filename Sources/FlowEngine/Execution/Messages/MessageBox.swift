/// A message that a script, a host or a person sends to a run.
package struct Message {
  /// The name that a wait asks for.
  package var name: ByteString
  package var content: Content
  /// The run that it is for, by its lineage; 0 for any run of the box.
  package var run: UInt64

  package enum Content {
    case value(FlowValue)
    /// A word of a command line, or an answer at a terminal: the type of the wait says what value it is.
    case text(ByteString)
  }

  package init(name: ByteString, content: Content, run: UInt64 = 0) {
    self.name = name
    self.content = content
    self.run = run
  }

  /// The value for a wait; nil if it isn't of the type that the wait asks for.
  package func value(for type: FlowValueType?) -> FlowValue? {
    switch content {
    case .value(let value): return type?.mismatch(value) == nil ? value : nil
    case .text(let text): return Self.value(of: text, for: type)
    }
  }

  /// The value of a text: the first of a boolean, an integer, a number and the text itself that is of the type.
  package static func value(of text: ByteString, for type: FlowValueType?) -> FlowValue? {
    var candidates: [FlowValue] = []
    switch text.cases {
    case "true": candidates.append(.boolean(true))
    case "false": candidates.append(.boolean(false))
    // Only where nothing but a boolean can be meant.
    case "yes", "y": if type != nil { candidates.append(.boolean(true)) }
    case "no", "n": if type != nil { candidates.append(.boolean(false)) }
    default: break
    }
    let plain = text.bytes.allSatisfy { $0.isDigit || "+-.eE".bytes.contains($0) }
    if plain, let number = Int64(text.description) { candidates.append(.integer(number)) }
    if plain, let number = Double(text.description) { candidates.append(.number(number)) }
    guard let type else { return candidates.first ?? .bytes(text) }
    if type.mismatch(.bytes(text)) == nil { return .bytes(text) }
    return candidates.first { type.mismatch($0) == nil }
  }
}

/// Keeps messages until a wait takes them. Confined to the thread of a loop.
package protocol MessageStore: AnyObject {
  /// Whether other processes add messages, and waits outlive the process.
  var isShared: Bool { get }
  /// Whether the process is about to end, and another one continues its waits.
  var isSuspended: Bool { get }
  /// Whether another process may have added something since the last call.
  func mayHaveNew() -> Bool
  /// Whether the reason of a failure may be over at the next look.
  func mayPass(_ error: any Error) -> Bool
  /// Adds a message; it is kept when this returns. With `waits` another process that writes is awaited for some seconds.
  func add(_ message: Message, waits: Bool) throws
  /// Notes a wait; returns when it began, in seconds since 1970: perhaps in an earlier process. nil: it has timed out
  /// there. `now` is the time.
  func begin(_ request: MessageRequest, at now: Double) throws -> Double?
  /// Takes the message of a wait: the one that it has taken before, else the oldest one that no wait has taken.
  /// It is kept that it is taken when this returns. nil: there is none yet.
  func take(_ request: MessageRequest) throws -> Message?
  /// Drops the message that a wait has taken: it isn't of its type.
  func drop(_ request: MessageRequest) throws
  /// Forgets a wait, which has its message or was given up; of one that has timed out that is known.
  func end(_ request: MessageRequest, isTimedOut: Bool)
}

/// A keeper of runs that keeps messages to them, too.
package protocol MessageKeeper: AnyObject {
  /// The messages to the runs that it keeps; nil if it keeps none.
  var messageBox: MessageBox? { get }
}

/// A wait: the message that it asks for.
package struct MessageRequest {
  package var name: ByteString
  /// Names the wait: the same in each process and each attempt that executes it.
  package var wait: ByteString
  /// The runs whose messages it takes, by lineage: its own, and those around it.
  package var runs: [UInt64]
  package var type: FlowValueType?
  /// A question for a person.
  package var ask: ByteString?
  /// How long it lasts; nil: for ever.
  package var timeout: Duration?
  /// Whether the op continues what an earlier process had begun: a wait that has timed out there isn't waited again.
  package var isContinued = false

  package init(
    name: ByteString, wait: ByteString, runs: [UInt64], type: FlowValueType?, ask: ByteString?,
    timeout: Duration?
  ) {
    self.name = name
    self.wait = wait
    self.runs = runs
    self.type = type
    self.ask = ask
    self.timeout = timeout
  }
}

/// The messages of a run, or of all runs that a store keeps together.
package final class MessageBox {
  package let store: any MessageStore
  /// By the key of an op: the generation of its attempt, and how often that has waited for each name. The number of the
  /// attempt isn't enough: the flow around the op may be attempted again, too.
  private var counts: [ByteString: (attempt: UInt64, isFirst: Bool, names: [ByteString: Int])] = [:]

  package init(_ store: any MessageStore) { self.store = store }

  /// The name of the next wait of an op.
  func nextWait(
    of key: ByteString, attempt: UInt64, for name: ByteString
  ) -> (name: ByteString, isOfFirstAttempt: Bool) {
    var known = counts[key] ?? (attempt, true, [:])
    if known.attempt != attempt { known = (attempt, false, [:]) }
    let number = known.names[name, default: 0] + 1
    known.names[name] = number
    counts[key] = known
    return ("\(key) \(number) \(name)", known.isFirst)
  }

  /// Adds a message, and delivers it if something waits for it. While another process writes, the loop is blocked.
  package func send(_ message: Message, on loop: FlowEventLoop) throws {
    try store.add(message, waits: true)
    loop.messages.deliver()
  }
}

/// Messages of runs that aren't kept.
final class MemoryMessages: MessageStore {
  /// Those that no wait has taken, by name, and the others, by wait.
  private var open: [ByteString: MessageQueue] = [:]
  private var taken: [ByteString: Message] = [:]

  var isShared: Bool { false }
  var isSuspended: Bool { false }
  func mayHaveNew() -> Bool { true }
  func mayPass(_ error: any Error) -> Bool { false }
  func add(_ message: Message, waits: Bool) {
    open[message.name, default: MessageQueue()].add(message)
  }
  func begin(_ request: MessageRequest, at now: Double) -> Double? { 0 }
  func end(_ request: MessageRequest, isTimedOut: Bool) {}
  func drop(_ request: MessageRequest) { taken[request.wait] = nil }

  func take(_ request: MessageRequest) -> Message? {
    if let known = taken[request.wait] { return known }
    let message = open[request.name]?.take { $0.run == 0 || request.runs.contains($0.run) }
    taken[request.wait] = message
    return message
  }
}

/// Messages in the order in which they came. Taking the oldest one doesn't move the others.
private struct MessageQueue {
  private var messages: [Message?] = []
  /// The place of the oldest one.
  private var first = 0

  mutating func add(_ message: Message) { messages.append(message) }

  mutating func take(where isWanted: (Message) -> Bool) -> Message? {
    for index in first..<messages.count {
      guard let message = messages[index], isWanted(message) else { continue }
      messages[index] = nil
      while first < messages.count, messages[first] == nil { first += 1 }
      if first > 32, first * 2 > messages.count {
        messages.removeFirst(first)
        first = 0
      }
      return message
    }
    return nil
  }
}
