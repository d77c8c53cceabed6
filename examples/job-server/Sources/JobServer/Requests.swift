import FlowEngine
import Foundation

/// A line from a client, in JSON: `{"run": "1", "script": "return ...", "data": {}}` or `{"cancel": "1"}`.
struct Request: Decodable {
  /// The id of a job to run. The client chooses it, and gets it back with each line about the job.
  var run: String?
  var script: String?
  var data: [String: FlowValue]?
  var traceparent: String?
  /// The id of a job to cancel.
  var cancel: String?
  var reason: String?

  init(_ line: [UInt8]) throws {
    self = try JSONDecoder().decode(Request.self, from: Data(line))
  }
}

/// A line to a client, in JSON: an event of a job, or its outcome, which has a `state`.
struct Reply: Encodable {
  var id: String?
  /// `succeeded`, `failed`, `cancelled` or `refused`.
  var state: String?
  /// What the script has returned.
  var result: [FlowValue]?
  /// Why it hasn't succeeded: the message, and the kind of the error, such as `timeout`.
  var error: String?
  var kind: String?
  /// The kind of an event, and what it is about.
  var event: String?
  var op: String?
  var message: String?

  init(id: String, _ event: JobEvent) {
    self.id = id
    self.event = event.kind
    op = event.op
    message = event.message
  }

  init(id: String?, _ outcome: JobOutcome) {
    self.id = id
    switch outcome {
    case .succeeded(let values):
      state = "succeeded"
      result = values.map(\.flowValue)
    case .failed(let failure):
      state = failure.kind == .cancelled ? "cancelled" : "failed"
      error = failure.description
      kind = failure.kind.name
    case .refused(let reason):
      state = "refused"
      error = reason
    }
  }

  /// The line, with its line feed.
  var line: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if let text = try? encoder.encode(self) { return text + [UInt8(ascii: "\n")] }
    // A result that is infinite or too deep, for example, isn't JSON.
    var problem = Reply(id: id, .refused("the result isn't JSON"))
    problem.state = "failed"
    return ((try? encoder.encode(problem)) ?? Data()) + [UInt8(ascii: "\n")]
  }
}
