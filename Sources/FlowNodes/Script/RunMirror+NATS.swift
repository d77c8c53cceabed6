package import FlowEngine
package import FlowJournal
internal import FlowRemote
internal import FlowScripting
internal import FlowSystem

extension RunMirror {
  /// Keeps runs on servers of NATS.
  ///
  /// - Parameters:
  ///   - script: The script's name on all nodes.
  ///   - settings: The servers, and how long a process waits for them while they are away.
  package init(script: ByteString, on settings: RemoteSettings) {
    self.init(script: script) { () throws(FlowError) in try NATSMirror(settings) }
  }
}

/// A connection to servers of NATS that keep runs. It has a loop of its own, which runs only within its calls.
private final class NATSMirror: MirrorConnection {
  private let loop = FlowEventLoop()
  private let stream: KeepStream
  private let settings: RemoteSettings
  private var isClosed = false

  /// How long a process that ends waits for a server that is away.
  private static let lastPatience: Int64 = 5_000_000_000
  /// The pause before another attempt.
  private static let pause = Duration.milliseconds(200)
  /// How long a process isn't heard that executes no run any more.
  private static let silence: Int64 = 10_000_000_000

  init(_ settings: RemoteSettings) throws(FlowError) {
    self.settings = settings
    let seal = try settings.seal()
    let loop = loop
    stream = try Self.wait(on: loop) {
      try await KeepStream.open(settings.servers, seal: seal, on: loop)
    }
  }

  deinit { close() }

  func close() {
    if isClosed { return }
    isClosed = true
    stream.close()
    loop.shutdown()
  }

  var place: ByteString { settings.place }

  private static func wait<Value>(
    on loop: FlowEventLoop, _ body: @escaping () async throws -> Value
  ) throws(FlowError) -> Value {
    var result: Result<Value, FlowError>?
    loop.perform(body) { result = $0 }
    _ = loop.turn { result != nil }
    guard let result else {
      throw FlowError(.error, "the connection to the server of NATS has ended")
    }
    return try result.get()
  }

  private func wait<Value>(
    _ body: @escaping (KeepStream) async throws -> Value
  ) throws(FlowError) -> Value {
    try Self.wait(on: loop) { [stream] in try await body(stream) }
  }

  // MARK: Messages

  func publish(
    _ bytes: [UInt8], of run: MirroredRun, after last: UInt64, isLast: () -> Bool
  ) throws(FlowError) -> MirrorReply {
    let id: ByteString = "\(run.id)-\(UInt64.random(in: 0 ... .max).hexadecimal)"
    let begun = SystemClock.read(CLOCK_MONOTONIC)
    // A large message takes a while; without signs of life others would replace this process.
    let beats = Beats(loop) { [weak self] in self?.beat(run) }
    defer { beats.stop() }
    while true {
      do throws(FlowError) {
        let published = try wait {
          try await $0.publish(bytes, script: run.script, run: run.id, after: last, id: id)
        }
        switch published {
        case .stored(let sequence): return .stored(sequence)
        case .outdated(let message):
          return .outdated(message.map { MirroredBytes(sequence: $0.sequence, bytes: $0.bytes) })
        }
      } catch {
        let passed = SystemClock.read(CLOCK_MONOTONIC) - begun
        let usual = settings.timeout.clampedNanoseconds
        let patience = isLast() ? min(Self.lastPatience, usual) : usual
        guard KeepStream.mayPass(error), passed < patience else { throw error }
        pause()
      }
    }
  }

  private func pause() {
    var isOver = false
    loop.schedule(after: Self.pause) { isOver = true }
    _ = loop.turn { isOver }
  }

  func last(of run: MirroredRun) throws(FlowError) -> MirroredBytes? {
    let found = try wait { try await $0.last(script: run.script, run: run.id) }
    return found.map { MirroredBytes(sequence: $0.sequence, bytes: $0.bytes) }
  }

  func read(
    _ run: MirroredRun, after first: UInt64, upTo last: UInt64,
    _ body: (MirroredBytes) throws(FlowError) -> Void
  ) throws(FlowError) {
    for payload in try payloads(of: run, after: first, upTo: last) {
      try body(try content(of: payload))
    }
  }

  private func payloads(
    of run: MirroredRun, after first: UInt64, upTo last: UInt64
  ) throws(FlowError) -> [KeepStream.Payload] {
    try wait {
      try await $0.read(script: run.script, run: run.id, after: first, upTo: last)
    }
  }

  func remove(_ run: MirroredRun) throws(FlowError) {
    guard let last = try last(of: run) else { return }
    let payloads = try payloads(of: run, after: 0, upTo: last.sequence)
    try wait { try await $0.remove(script: run.script, run: run.id, payloads) }
  }

  // MARK: Runs

  func runs(
    of script: ByteString?
  ) throws(FlowError) -> [(run: MirroredRun, last: MirroredBytes)] {
    var runs: [(run: MirroredRun, last: MirroredBytes)] = []
    for payload in try wait({ try await $0.lastMessages(of: script) }) {
      guard let name = payload.name else { continue }
      runs.append((MirroredRun(script: name.script, id: name.run), try content(of: payload)))
    }
    return runs
  }

  private func content(of payload: KeepStream.Payload) throws(FlowError) -> MirroredBytes {
    let bytes = try wait { try await $0.bytes(of: payload) }
    return MirroredBytes(sequence: payload.sequence, bytes: bytes)
  }

  func hasUnreadableRuns(of script: ByteString) throws(FlowError) -> Bool {
    try wait { try await $0.hasRunsOfOtherKey(script: script) }
  }

  func hashKey(orElse own: [UInt8]) throws(FlowError) -> [UInt8] {
    try wait { try await $0.hashKey(orElse: own) }
  }

  // MARK: Signs of life

  func beat(_ run: MirroredRun) {
    // Without it another node may continue the run, as if this one were gone.
    try? stream.beat(script: run.script, run: run.id)
  }

  func living(_ runs: [MirroredRun]) throws(FlowError) -> Set<MirroredRun> {
    var heard: Set<MirroredRun> = []
    var subscriptions: [NATSSubscription] = []
    for run in runs {
      subscriptions += try stream.listen(script: run.script, run: run.id) { _ in heard.insert(run) }
    }
    defer { for subscription in subscriptions { subscription.unsubscribe() } }
    var isOver = false
    var isDeaf = !stream.connection.isConnected
    stream.connection.onDisconnect = { isDeaf = true }
    defer { stream.connection.onDisconnect = nil }
    let timer = loop.schedule(
      at: loop.now().later(by: Self.silence)
    ) { isOver = true }
    _ = loop.turn { isOver || heard.count == runs.count }
    timer.cancel()
    // Without a connection silence says nothing.
    guard !isDeaf || heard.count == runs.count else {
      throw FlowError(
        .error,
        "\(place): the connection was lost before it was known who executes the run: try again")
    }
    return heard
  }
}

/// Signs of life while a call waits.
private final class Beats {
  private let loop: FlowEventLoop
  private let beat: () -> Void
  private var timer: LoopTimer?

  init(_ loop: FlowEventLoop, _ beat: @escaping () -> Void) {
    self.loop = loop
    self.beat = beat
    schedule()
  }

  private func schedule() {
    timer = loop.schedule(after: .seconds(1)) { [weak self] in
      self?.beat()
      self?.schedule()
    }
  }

  func stop() { timer?.cancel() }
}
