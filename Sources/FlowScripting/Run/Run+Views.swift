public import FlowEngine

extension Run {
  /// The run as a page for a browser (HTML), which needs nothing else: `--timeline` of flowlua. A run that
  /// hasn't ended is shown as far as it is. Called on the loop's thread.
  public func timeline() -> String { timelineBytes().description }
  /// The bytes of `timeline`.
  package func timelineBytes() -> ByteString { TimelinePage.text(of: [TimelinePage.Entry(self)]) }

  /// The run as Chrome trace events in JSON, which Perfetto shows: `--trace` of flowlua. The waits
  /// of scripts are in it only with that option. Called on the loop's thread.
  public func trace() -> String { traceBytes().description }
  /// The bytes of `trace`.
  package func traceBytes() -> ByteString { RunTrace.text(of: [RunSpans(self)]) }
}

extension ScriptHost {
  /// The spans of a run in OTLP/JSON, for collectors of OpenTelemetry: `--otlp` of flowlua. A program sends them to a
  /// collector as the body of a POST request, of the type `application/json`.
  ///
  /// There is a span for each execution, each attempt if there are several, each undo, program and request. They belong
  /// to the run's trace (see `EventLoop.trace` and `Op.start`); the runs without one share a trace of this host. What
  /// hasn't ended is shown as far as it is. The service is named by `serviceName` or the environment. No secret is in
  /// the text.
  ///
  /// Called on the loop's thread.
  public func otlp(of run: Run) -> String { otlpBytes(of: run).description }
  /// The bytes of `otlp`.
  package func otlpBytes(of run: Run) -> ByteString {
    RunOTLP.text(of: [RunSpans(run)], run.traceContext ?? trace, resource)
  }
}
