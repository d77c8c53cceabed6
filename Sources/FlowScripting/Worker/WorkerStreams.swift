@_spi(Scripting) package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A request of an op in a worker to the main thread, where the streams of its graph are.
struct StreamRequest: Sendable {
  /// The execution of the op.
  let job: UInt64
  let number: UInt64
  let what: What

  enum What: Sendable {
    /// The next item of a stream.
    case read(ByteString)
    case write(ByteString, WireValue, WireBatch)
    /// It doesn't wait for an earlier request any more.
    case stop
  }
}

/// The reply.
package enum StreamReply: Sendable {
  case item(WireValue, WireBatch)
  case end
  case failed(WireError)
  case written(isRead: Bool)
  /// It isn't written, because the argument of this number, or the use as a whole, is wrong.
  case refused(ByteString, argument: Int?)
}

/// A task of a worker that reads and writes streams.
protocol StreamingTask: WorkerTask {
  func handle(_ request: StreamRequest, worker: Int)
}

// MARK: In the worker

/// The streams that ops of a worker read and write: the main thread, which has them all, is asked.
final class WorkerStreams: HostService, DistantStreams {
  private let send: (StreamRequest) -> Void
  /// The number of the execution that a run of the worker is; nil if it isn't one of an op.
  private let job: (Run) -> UInt64?
  private var last: UInt64 = 0
  private var waiting: [UInt64: (StreamReply) -> Void] = [:]

  init(_ job: @escaping (Run) -> UInt64?, send: @escaping (StreamRequest) -> Void) {
    self.job = job
    self.send = send
  }

  /// Whether the reply to a request is still to come.
  var isWaiting: Bool { !waiting.isEmpty }

  /// The main thread has replied.
  func answer(_ number: UInt64, _ reply: StreamReply) {
    waiting.removeValue(forKey: number)?(reply)
  }

  /// Asks; returns the number of the request, nil if the op isn't one of the main thread's.
  fileprivate func ask(
    _ what: StreamRequest.What, _ run: Run, then: @escaping (StreamReply) -> Void
  ) -> UInt64? {
    guard let job = job(run) else { return nil }
    last += 1
    waiting[last] = then
    send(StreamRequest(job: job, number: last, what: what))
    return last
  }

  fileprivate func stop(_ number: UInt64, _ run: Run) {
    guard waiting.removeValue(forKey: number) != nil, let job = job(run) else { return }
    send(StreamRequest(job: job, number: number, what: .stop))
  }

  func source(of key: ByteString, _ context: OpContext) -> (any StreamSource)? {
    guard let body = context.op.body as? StandInBody, body.streams.contains(key) else { return nil }
    return DistantSource(self, key, context.run)
  }

  func write(
    _ key: ByteString, _ item: FlowValue, _ context: OpContext, _ host: ScriptHost,
    then: @escaping (DistantWrite) -> Void
  ) throws(FlowError) -> () -> Void {
    var batch = WireBatch()
    let wired: WireValue
    do throws(WireProblem) { wired = try host.wire(item, &batch) } catch {
      throw error.failure("the item of <\(key)>")
    }
    let run = context.run
    let number = ask(.write(key, wired, batch), run) { reply in
      switch reply {
      case .written(let isRead): then(.done(isRead: isRead))
      case .refused(let why, let argument): then(.refused(why, argument: argument))
      case .failed(let error): then(.refused(error.error(on: host).message, argument: nil))
      case .item, .end: then(.done(isRead: false))
      }
    }
    guard let number else {
      throw .usage("<\(key)> isn't a stream of this op")
    }
    return { [weak self] in self?.stop(number, run) }
  }
}

/// A stream that an op of a worker reads.
private final class DistantSource: StreamSource {
  private let streams: WorkerStreams
  private let key: ByteString
  private let run: Run
  private var reply: StreamReply?
  /// Whether a request is under way, which a wait that was stopped leaves to the next one.
  private var isAsked = false
  private var onReply: (() -> Void)?
  private var hasEnded = false

  init(_ streams: WorkerStreams, _ key: ByteString, _ run: Run) {
    self.streams = streams
    self.key = key
    self.run = run
  }

  var isAwaited: Bool { onReply != nil }
  var hasNext: Bool { hasEnded || reply != nil }

  func next(_ host: ScriptHost) throws -> FlowValue? {
    guard let reply = reply.take() else { return nil }
    switch reply {
    case .item(let value, let batch): return try host.value(value, in: batch)
    case .failed(let error): throw host.raise(error.error(on: host))
    case .refused(let why, _): throw host.raise(.usage(why))
    case .end, .written:
      hasEnded = true
      return nil
    }
  }

  func whenNext(_ then: @escaping () -> Void) -> () -> Void {
    onReply = then
    if !isAsked {
      isAsked = true
      let number = streams.ask(.read(key), run) { [weak self] in self?.take($0) }
      // The op has ended.
      if number == nil { take(.end) }
    }
    return { [weak self] in self?.onReply = nil }
  }

  private func take(_ reply: StreamReply) {
    isAsked = false
    self.reply = reply
    onReply.take()?()
  }
}

// MARK: On the main thread

/// The streams of an op that a worker executes.
final class ExecutionStreams {
  private let host: ScriptHost
  private let reply: (UInt64, StreamReply, Int) -> Void
  private var inputs: [ByteString: StreamInput] = [:]
  /// The requests that wait, each with what ends its wait.
  private var waiting: [UInt64: () -> Void] = [:]

  init(_ host: ScriptHost, reply: @escaping (UInt64, StreamReply, Int) -> Void) {
    self.host = host
    self.reply = reply
  }

  func handle(_ request: StreamRequest, _ context: OpContext, worker: Int) {
    let number = request.number
    switch request.what {
    case .stop: waiting.removeValue(forKey: number)?()
    case .read(let name):
      guard let input = input(name, context) else {
        return reply(
          number,
          .refused("<\(name)> isn't a stream that [\(context.op.name)] needs", argument: nil),
          worker)
      }
      if input.isOfStream { context.notePassedItems() }
      if input.hasNext { return reply(number, next(of: input, name), worker) }
      wait(number) { done in
        input.whenNext { [unowned self] in
          done()
          reply(number, next(of: input, name), worker)
        }
      }
    case .write(let name, let value, let batch):
      let item: FlowValue
      do { item = try host.value(value, in: batch) } catch {
        let error = host.flowError(thrown: error, op: nil)
        return reply(number, .failed(WireError(error, from: host)), worker)
      }
      switch context.output(host.loop.keys.intern(name)) {
      case .failure(let error): reply(number, .refused(error.message, argument: nil), worker)
      case .success(let output):
        if let wanted = output.mismatch(item) {
          let got = item.isSecret ? "secret" : item.plain.typeName
          let why: ByteString = "item #\(output.next) of <\(name)>: \(wanted) expected, got \(got)"
          return reply(number, .refused(why, argument: 2), worker)
        }
        if output.hasRoom {
          output.write(item)
          return reply(number, .written(isRead: output.isRead), worker)
        }
        wait(number) { done in
          output.write(item) { [unowned self] in
            done()
            reply(number, .written(isRead: output.isRead), worker)
          }
        }
      }
    }
  }

  /// Keeps what ends the wait of a request, which may be over before `begin` returns.
  private func wait(_ number: UInt64, _ begin: (_ done: @escaping () -> Void) -> () -> Void) {
    var isOver = false
    let stop = begin { [unowned self] in
      isOver = true
      waiting[number] = nil
    }
    if !isOver { waiting[number] = stop }
  }

  private func input(_ name: ByteString, _ context: OpContext) -> StreamInput? {
    if let known = inputs[name] { return known }
    let key = host.loop.keys.intern(name)
    guard let value = context.get(key) else { return nil }
    let made = context.input(key, value)
    inputs[name] = made
    return made
  }

  private func next(of input: StreamInput, _ name: ByteString) -> StreamReply {
    do throws(FlowError) {
      guard let item = try input.next() else { return .end }
      var batch = WireBatch()
      do throws(WireProblem) {
        let wired = try host.wire(item, &batch)
        return .item(wired, batch)
      } catch {
        throw error.failure("an item of <\(name)>")
      }
    } catch {
      return .failed(WireError(error, from: host))
    }
  }

  /// The op has ended.
  func end() {
    for stop in waiting.values { stop() }
    waiting = [:]
  }
}
