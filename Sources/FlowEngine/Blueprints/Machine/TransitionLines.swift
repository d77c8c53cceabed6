/// The texts of a machine's transitions, each put into the log once: a machine that makes a million
/// transitions makes few different ones.
final class TransitionLines {
  private struct Edge: Hashable {
    let from: Int
    let to: Int
    /// -1 without an event, -2 for a retry.
    let event: Int
  }

  private let logic: any MachineLogic
  private var payloads: [Edge: Payload] = [:]

  // Unchecked exclusivity: see HotPath.swift.

  /// The last two lines: a machine often alternates between two steps.
  @exclusivity(unchecked) private var recent = Line.none
  @exclusivity(unchecked) private var older = Line.none
  /// How many records the log had removed when these were put into it: its texts move when it removes some.
  @exclusivity(unchecked) private var removed = 0

  private struct Line {
    let edge: Edge
    let payload: Payload

    /// A line for no step.
    static let none = Line(edge: Edge(from: -1, to: -1, event: -3), payload: .none)
  }

  init(_ logic: any MachineLogic) {
    self.logic = logic
  }

  /// `amount -> tariffs`, or `confirmation -> amount on editAmount`.
  @inline(__always)
  func payload(_ from: Int, _ to: Int, _ event: Int?, _ log: EventLog) -> Payload {
    payload(Edge(from: from, to: to, event: event ?? -1), log)
  }

  /// `retry amount`.
  func payload(retrying step: Int, _ log: EventLog) -> Payload {
    payload(Edge(from: step, to: step, event: -2), log)
  }

  @inline(__always)
  private func payload(_ edge: Edge, _ log: EventLog) -> Payload {
    // The log may have got more secrets, which no text may show.
    if !log.hasSecrets, removed == log.removed {
      if recent.edge == edge { return recent.payload }
      if older.edge == edge { return older.payload }
    }
    return look(for: edge, log)
  }

  @inline(never)
  private func look(for edge: Edge, _ log: EventLog) -> Payload {
    if log.hasSecrets { return log.payload(text(edge)) }
    if removed != log.removed {
      removed = log.removed
      payloads = [:]
      (recent, older) = (.none, .none)
    }
    let payload = payloads[edge] ?? log.payload(text(edge))
    payloads[edge] = payload
    older = recent
    recent = Line(edge: edge, payload: payload)
    return payload
  }

  private func text(_ edge: Edge) -> ByteString {
    let to = logic.name(ofStep: edge.to)
    if edge.event == -2 { return "retry \(to)" }
    let from = logic.name(ofStep: edge.from)
    return edge.event < 0
      ? "\(from) -> \(to)" : "\(from) -> \(to) on \(logic.name(ofEvent: edge.event))"
  }
}
