import FlowEngine
import FlowScripting
import LuaVM

/// A script of a client, with its data.
struct Job: Sendable {
  var id: String
  var script: String
  var data: [String: PlainValue] = [:]
  /// The header `traceparent` of the request: the job's runs are part of that trace.
  var traceparent: String?
}

/// An event that a client gets of a job while it runs.
struct JobEvent: Sendable, Equatable {
  /// `start`, `finish`, `log`, `print`, …
  var kind: String
  /// The op that it is about; nil for what the script prints.
  var op: String?
  var message: String?
}

/// How a job has ended.
enum JobOutcome: Sendable {
  case succeeded([PlainValue])
  case failed(FlowError)
  /// It didn't run; the text says why.
  case refused(String)
}

/// The limits of a job.
struct JobLimits: Sendable {
  /// For the script, whether it waits or is busy.
  var time = Duration.seconds(10)
  /// For its cleanups, after a stop.
  var cleanup = Duration.seconds(1)
  /// Bytes.
  var memory = 64 << 20
}

extension Job {
  /// Runs the script in a host of its own, on a thread of its own.
  ///
  /// - Parameters:
  ///   - shop: The part of the program that the ops of the server use.
  ///   - limits: The limits of the script.
  ///   - canceller: Cancels the job from any thread, also before its host exists.
  ///   - report: Gets the events, on the thread of the job.
  ///   - log: Writes a line to the log of the server, on any thread.
  /// - Returns: How it has ended.
  func run(
    in shop: Shop, limits: JobLimits, canceller: ScriptCanceller,
    report: @escaping @Sendable (JobEvent) -> Void, log: @escaping @Sendable (String) -> Void
  ) async -> JobOutcome {
    do {
      let result = try await ScriptHost.run(
        // A client's script gets nothing that reaches outside of its state, except the ops of this server.
        script: .text(script, name: id), data: InitialData(data), permissions: .restricted,
        timeLimit: limits.time, memoryLimit: limits.memory,
        output: .handler { report(JobEvent(kind: "print", message: $0.description)) },
        canceller: canceller
      ) { host in
        let loop = host.loop
        loop.cleanupGrace = limits.cleanup
        loop.trace = traceparent.flatMap { TraceContext(traceparent: $0) }
        loop.eventSinks = [JobEventSink(report), RunLogSink(JobLogger(job: id, log: log))]
        try host.registerShop(shop)
      }
      return .succeeded(result.values)
    } catch {
      return .failed(error)
    }
  }
}

/// Passes the events of all runs of a job to its client.
private final class JobEventSink: EventSink {
  private let report: (JobEvent) -> Void

  init(_ report: @escaping (JobEvent) -> Void) {
    self.report = report
  }

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    switch event.kind {
    case .start, .finish, .log, .retry, .progress:
      report(
        JobEvent(
          kind: String(event.kind.name), op: String(event.op),
          message: event.message.map { String($0) }))
    default: break
    }
  }
}

/// Writes the events to the log of the server; a program with swift-log has its `Logger` here.
private struct JobLogger: RunLogger {
  let job: String
  let log: @Sendable (String) -> Void
  let minimumLevel = RunLogLevel.info

  func log(level: RunLogLevel, message: String, metadata: [String: String], source: String) {
    let trace = metadata["trace_id"].map { " trace=\($0)" } ?? ""
    // A script must not write lines that look like those of other jobs.
    let line = message.shortened().split(separator: "\n").joined(separator: "\\n")
    log("\(level) job=\(job)\(trace) \(line)")
  }
}
