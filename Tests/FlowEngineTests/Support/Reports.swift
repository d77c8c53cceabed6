import FlowEngine

/// A summary without its times and its first and last line.
func lines(_ run: Run) -> [String] {
  run.summary().description.split(separator: "\n").dropFirst().dropLast().map { line in
    let isTimed = line.contains(" AM [") || line.contains(" PM [")
    guard isTimed, let bracket = line.firstIndex(of: "[") else { return String(line) }
    return String(line[bracket...])
  }
}

/// The lines between "start with" and "end with".
func body(_ run: Run) -> [String] {
  let all = lines(run)
  let end = all.lastIndex(of: "[DataBucket] end with:") ?? all.count
  let start =
    all.firstIndex { $0.hasPrefix("[") && $0 != "[DataBucket] start with:" } ?? all.count
  return start < end ? Array(all[start..<end]) : []
}

/// The events of a run with their times: `1.5 start AnOp`.
func times(_ run: Run, _ kinds: Set<RunEvent.Kind> = [.start, .finish, .retry]) -> [String] {
  run.events.filter { kinds.contains($0.kind) }.map { "\($0.seconds) \($0.kind.name) \($0.op)" }
}

/// The outcome of a task in words.
func text<Success>(_ task: FlowTask<Success>) -> String {
  switch task.outcome {
  case nil: "pending"
  case .success(let result): "\(result)"
  case .failure(let error): error.description
  }
}

/// The messages of the failures that nobody observed.
func reports(_ loop: FlowEventLoop) -> [String] {
  loop.unobservedFailures.map(\.error.description)
}
