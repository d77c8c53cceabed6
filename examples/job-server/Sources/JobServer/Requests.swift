import FlowEngine
import Foundation

/// A line from a client, in JSON: `{"run": "1", "script": "return ...", "data": {}}` or `{"cancel": "1"}`.
enum Request {
  /// The client chooses the id, and gets it back with each line about the job.
  case run(id: String, script: String, data: [String: PlainValue], traceparent: String?)
  case cancel(id: String, reason: String)

  /// Bytes of a line.
  static let longest = 1 << 20

  init(_ line: [UInt8]) throws(Refusal) {
    if line.count > Self.longest {
      throw Refusal(reason: "a request has at most \(Self.longest) bytes")
    }
    guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(line)) else {
      throw Refusal(reason: "a request is an object in JSON")
    }
    if let id = fields.run {
      self = .run(
        id: try Self.checked(id), script: fields.script ?? "",
        data: (fields.data ?? [:]).compactMapValues { PlainValue(flowValue: $0) },
        traceparent: fields.traceparent)
    } else if let id = fields.cancel {
      self = .cancel(id: try Self.checked(id), reason: fields.reason ?? "cancelled by the client")
    } else {
      throw Refusal(reason: "a request has 'run' or 'cancel'")
    }
  }

  /// An id is in each line of the log, so it contains no line feed and isn't long.
  private static func checked(_ id: String) throws(Refusal) -> String {
    guard (1...100).contains(id.utf8.count), id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw Refusal(reason: "an id has 1 to 100 characters of ASCII, without spaces") }
    return id
  }

  private struct Fields: Decodable {
    var run: String?
    var script: String?
    var data: [String: FlowValue]?
    var traceparent: String?
    var cancel: String?
    var reason: String?
  }
}

/// The server doesn't do what a client asked for.
struct Refusal: Error {
  var reason: String
}

/// A line to a client, in JSON: an event of a job, or its outcome, which has a `state`.
struct Reply: Encodable {
  var id: String?
  /// `succeeded`, `failed`, `cancelled` or `refused`.
  var state: String?
  /// The list of the values that the script has returned.
  var result: FlowValue?
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
    op = event.op?.shortened()
    message = event.message?.shortened()
  }

  init(id: String?, _ outcome: JobOutcome) {
    self.id = id
    switch outcome {
    case .succeeded(let values):
      state = "succeeded"
      result = FlowValue(values.map(\.flowValue))
    case .failed(let failure):
      state = failure.kind == .cancelled ? "cancelled" : "failed"
      error = failure.description.shortened()
      kind = failure.kind.description
    case .refused(let reason):
      state = "refused"
      error = reason
    }
  }

  /// Bytes of a line.
  static let longest = 1 << 20

  /// The line, with its line feed.
  var line: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // A few tables that refer to each other can become any amount of JSON: the encoder stops there.
    encoder.userInfo[.flowValueSizeLimit] = Self.longest
    if let text = try? encoder.encode(self), text.count < Self.longest {
      return text + [UInt8(ascii: "\n")]
    }
    // A result may also be infinite or too deep, for example.
    var problem = Reply(id: id, .refused("the result isn't JSON of at most \(Self.longest) bytes"))
    problem.state = "failed"
    return ((try? encoder.encode(problem)) ?? Data()) + [UInt8(ascii: "\n")]
  }
}

extension String {
  /// The first part of a text that a script made, which may be as long as its memory.
  func shortened() -> String {
    let most = 10_000
    return utf8.count <= most ? self : String(decoding: utf8.prefix(most), as: UTF8.self) + "…"
  }
}
