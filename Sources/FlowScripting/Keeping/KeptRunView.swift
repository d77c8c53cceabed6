package import FlowEngine
package import FlowJournal

/// A run of a store as views show it: also one that is long over.
package struct KeptRunView {
  package let run: KeptRunSummary
  package let records: [OpRecord]

  /// Reads a run.
  ///
  /// - Throws: A `FlowError` when there is none, or it isn't what was written.
  package init(_ id: ByteString, in store: JournalStore) throws(FlowError) {
    run = try store.run(id)
    records = try store.records(of: id)
  }

  /// Its ops as spans: one for each op, the latest execution, and for the flows around them.
  package var spans: RunSpans {
    let outcome: Span.Outcome =
      switch run.state {
      case .finished: .succeeded
      case .live: .running
      case .failed: .failed
      // Stores of 1.0 don't say how a process has ended.
      case .unfinished:
        records.contains { $0.state == .failed } ? .failed : .cancelled
      }
    return RunSpans(
      kept: run.id, script: run.script, began: run.began, ended: run.changed, outcome,
      records.map { record in
        KeptSpan(
          path: record.path, op: record.op, label: record.label, began: record.began,
          ended: record.ended > 0 ? record.ended : nil,
          outcome: Self.outcome(of: record, isLive: run.isLive), error: record.error)
      })
  }

  private static func outcome(of record: OpRecord, isLive: Bool) -> Span.Outcome {
    switch record.state {
    case .finished: .succeeded
    case .failed: .failed
    case .started: isLive ? .running : .cancelled
    case .undone, .stopped: .cancelled
    }
  }

  /// The run as a page for a browser.
  package var timeline: ByteString {
    TimelinePage.text(
      of: [TimelinePage.Entry(spans, recordCount: records.count, keptRun: run.id)],
      script: run.script, .final)
  }

  /// The run as Markdown.
  package var report: ByteString { RunReport.text(of: spans) }
}

extension KeptRunSummary {
  /// Whether a process is executing it.
  package var isLive: Bool { if case .live = state { true } else { false } }

  /// The word for its state that scripts read.
  package var word: ByteString {
    switch state {
    case .live: "executing"
    case .unfinished: "unfinished"
    case .failed: "failed"
    case .finished: "finished"
    }
  }
}
