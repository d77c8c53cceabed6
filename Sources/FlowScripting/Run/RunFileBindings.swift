package import FlowEngine
internal import Glibc
@_spi(Scripting) internal import LuaVM

/// Views of a run that are files: `report`, `timeline`, `trace`, `otlp`.
extension ScriptHost {
  static var runFileMethods: LuaFields<BoundMethod> {
    [
      "report": BoundMethod { host, call in
        try host.give(call, "report") { $0.reportBytes() }
      },
      "timeline": BoundMethod { host, call in
        try host.give(call, "timeline") { $0.timelineBytes() }
      },
      "trace": BoundMethod { host, call in
        try host.give(call, "trace") { $0.traceBytes() }
      },
      "otlp": BoundMethod { host, call in
        try host.give(call, "otlp", problem: SpanFile.problem) { host.otlpBytes(of: $0) }
      },
    ]
  }

  /// Writes a view of a run to the file that the call names, without blocking other code; returns its text
  /// if it names none. `problem` says why an existing file isn't replaced.
  private func give(
    _ call: LuaCall, _ function: String,
    problem: @escaping @Sendable (ByteString) -> ByteString? = { _ in nil },
    _ text: (Run) -> ByteString
  ) throws -> LuaAnswer {
    let (run, arguments) = try self.run(call, function)
    noteRead(ofAllIn: run)
    if arguments.isNil(1) { return try answer(call, .bytes(text(run))) }
    try check(.files, call, "run:\(function)")
    let path = try arguments.string(1)
    let content = text(run)
    return try offload(call) { cancellation throws(SystemError) in
      if let problem = problem(path) {
        throw SystemError("run:\(function): \(problem)", code: EEXIST)
      }
      try Files.write(content, to: path, cancellation)
    } answer: { call, _ in
      call.answer()
    }
  }
}

extension ScriptHost {
  /// The trace that spans belong to.
  package var trace: TraceContext { loop.trace ?? ownTrace }

  /// What spans say about this process.
  package var resource: TraceResource {
    TraceResource(title: serviceNameBytes, hiding: loop.secrets)
  }
}
