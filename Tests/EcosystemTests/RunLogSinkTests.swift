import FlowEngine
import Testing

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// The adapter that the documentation shows.
private struct FlowLogger: RunLogger {
  let logger: Logger

  var minimumLevel: RunLogLevel { RunLogLevel(rawValue: logger.logLevel.rawValue) ?? .info }

  func log(level: RunLogLevel, message: String, metadata: [String: String], source: String) {
    logger.log(
      level: Logger.Level(rawValue: level.rawValue) ?? .info, "\(message)",
      metadata: metadata.mapValues { .string($0) }, source: source)
  }
}

@Suite("The log sink")
struct RunLogSinkTests {
  private func entries(
    _ op: Op, level: Logger.Level = .debug, trace: TraceContext? = nil,
    data: InitialData = [:]
  ) -> [Logger.Entry] {
    var logger = Logger(label: "test")
    logger.logLevel = level
    let loop = FlowEventLoop(clock: VirtualClock())
    loop.trace = trace
    loop.eventSinks = [RunLogSink(FlowLogger(logger: logger))]
    let run = op.start(on: loop, data: data)
    loop.runUntilIdle()
    run.markObserved()
    return logger.entries
  }

  @Test("Levels have the names of swift-log's, in the same order")
  func levelsAreThoseOfSwiftLog() {
    #expect(RunLogLevel.allCases.map(\.rawValue) == Logger.Level.allCases.map(\.rawValue))
    #expect(RunLogLevel.allCases == RunLogLevel.allCases.sorted())
  }

  @Test("Each event of a run is a message with a level")
  func eventsAreMessages() {
    let flaky = Op("FlakyOp") { context in
      context.log("attempt \(context.attempt)")
      if context.attempt == 1 { throw FlowError(.error, "busy") }
      context.set("count", .integer(3))
    }
    let policy = RetryPolicy(attempts: 2, delay: .seconds(0.5))
    let flow = Flow("load").add(flaky.with(retry: policy)).add(SleepOp(.seconds(1)))
    let expected = [
      "info load: started", "debug FlakyOp: started", "info FlakyOp: attempt 1",
      "warning FlakyOp: Retry 2/2 in 0.5s: busy", "info FlakyOp: attempt 2",
      "trace FlakyOp: set count: 3", "debug FlakyOp: finished", "debug SleepOp: started",
      "debug SleepOp: finished", "info load: finished",
    ]
    #expect(entries(flow, level: .trace).map(\.line) == expected)
    #expect(
      entries(flow, level: .info).map(\.line)
        == expected.filter {
          $0.hasPrefix("info") || $0.hasPrefix("warning")
        })
  }

  @Test("A failed run is an error, a failed op a warning, and a stopped one a notice")
  func failuresHaveLevels() {
    let failing = Op("FailingOp") { _ in throw FlowError(.error, "no route") }
    #expect(
      entries(Flow("send").add(failing), level: .notice).map(\.line) == [
        "warning FailingOp: failed: no route", "error send: failed: no route",
      ])
    let slow = Op("SlowOp") { context in
      try await context.sleep(for: .seconds(9))
    }.with(timeout: .seconds(1))
    #expect(
      entries(slow, level: .notice).map(\.line) == ["error SlowOp: failed: timed out after 1s"])
    let stopped = Op("StoppedOp") { _ in throw FlowError(.cancelled, "cancelled: enough") }
    #expect(
      entries(Flow("send").add(stopped), level: .notice).map(\.line) == [
        "notice StoppedOp: cancelled: enough", "notice send: cancelled: enough",
      ])
  }

  @Test("A run that an op starts is an op of the outer run")
  func innerRunsAreOps() {
    let inner = Op("InnerOp") { context in context.log("inside") }
    let outer = Flow("outer").add(Op("OuterOp") { context in _ = context.start(inner) })
    #expect(
      entries(outer).map(\.line) == [
        "info outer: started", "debug OuterOp: started", "debug InnerOp: started",
        "info InnerOp: inside", "debug InnerOp: finished", "debug OuterOp: finished",
        "info outer: finished",
      ])
  }

  @Test("The metadata names run, op, path, attempt, duration and error")
  func metadataNamesTheExecution() throws {
    let op = Op("WaitOp") { context in
      try await context.sleep(for: .seconds(context.attempt))
      throw FlowError(.network, "reset")
    }
    let flow = Flow("fetch").add(op.with(retry: RetryPolicy(attempts: 2)))
    let entries = entries(flow)
    let failure = try #require(entries.first { $0.line.hasPrefix("warning WaitOp: failed") })
    let run = try #require(failure.metadata["run"])
    #expect(
      failure.metadata == [
        "run": run, "flow": .string("fetch"), "op": .string("WaitOp"),
        "path": .string("fetch/WaitOp"), "attempt": .string("2"), "duration": .string("3.0"),
        "error.type": .string("error"),
      ])
    let end = try #require(entries.last)
    #expect(
      end.metadata == [
        "run": run, "flow": .string("fetch"), "duration": .string("3.0"),
        "error.type": .string("network"),
      ])
    #expect(end.source == "FlowEngine")
  }

  @Test("In a trace, messages have the ids of the trace and of the op's span")
  func messagesHaveTheirSpans() throws {
    var seen: TraceContext?
    let op = Op("SpanOp") { context in
      seen = context.traceContext
      context.log("here")
    }
    let trace = TraceContext()
    let entries = entries(Flow("flow").add(op), trace: trace)
    let message = try #require(entries.first { $0.line == "info SpanOp: here" })
    let parent = try #require(seen?.traceparent).description
    guard case .string(let span)? = message.metadata["span_id"] else {
      Issue.record("no span")
      return
    }
    #expect(message.metadata["trace_id"] == .string(trace.id.description))
    #expect(parent == "00-\(trace.id)-\(span)-01")
  }

  @Test("No message has a secret")
  func messagesHaveNoSecrets() {
    let op = Op("LoginOp") { context in
      context.log("with hunter22")
      context.set("copy", .bytes("hunter22"))
      throw FlowError(.error, "refused hunter22")
    }
    let entries = entries(
      Flow("hunter22").add(op), level: .trace,
      data: InitialData([("password", .secret(.bytes("hunter22")))]))
    #expect(entries.count == 6)
    #expect(!entries.contains { "\($0)".contains("hunter22") })
  }
}
