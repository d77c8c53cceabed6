public import FlowEngine

extension Run {
  /// The run as a page for a browser (HTML), which needs nothing else: `--timeline` of flowlua. A run that
  /// hasn't ended is shown as far as it is. Called on the loop's thread.
  public func timeline() -> String { timelineBytes().description }
  /// The bytes of `timeline`.
  package func timelineBytes() -> ByteString { TimelinePage.text(of: [TimelinePage.Entry(self)]) }

  /// The run as Chrome trace events in JSON, which Perfetto shows: `--trace` of flowlua. It has waits of
  /// scripts if `ScriptHost.logsWaits` was set before the run. Called on the loop's thread.
  public func trace() -> String { traceBytes().description }
  /// The bytes of `trace`.
  package func traceBytes() -> ByteString { RunTrace.text(of: [RunSpans(self)]) }
}

extension ScriptHost {
  /// The spans of a run in OTLP/JSON, for collectors of OpenTelemetry: `--otlp` of flowlua. They belong to
  /// `Run.traceContext`, or else to a trace of this host. Called on the loop's thread.
  package func otlp(of run: Run) -> ByteString {
    RunOTLP.text(of: [RunSpans(run)], run.traceContext ?? trace, resource)
  }
}
