extension Op {
  /// The op with other names for some of its keys, for one place: its needs and gives have the names of that place, and
  /// its body reads and sets the keys that it knows.
  ///
  /// ```swift
  /// let scanOp = Op("ScanOp", needs: ["path": "string"]) { context in context.log("scanned") }
  /// let here = scanOp.renamingKeys(["path": "file"])  // it needs <file>
  /// ```
  ///
  /// It has the name and declarations of this op, and no policy of its own: this op's policy counts within it. The
  /// log has its lines around those of this op.
  ///
  /// - Parameter names: The names at that place, by the op's own. Other keys stay as they are.
  /// - Returns: The op for that place.
  public func renamingKeys(_ names: [ByteString: ByteString]) -> Op {
    func renamed(_ declared: [Declaration]) -> [Declaration] {
      declared.map { Declaration(names[$0.name] ?? $0.name, $0.type, doc: $0.doc) }
    }
    return Op(
      name: name, doc: doc, needs: renamed(needs), gives: renamed(gives),
      primaryInput: primaryInput.map { names[$0] ?? $0 },
      primaryOutput: primaryOutput.map { names[$0] ?? $0 },
      body: RenamedKeysBody(self, names))
  }
}

/// An op whose keys have other names outside of it.
package final class RenamedKeysBody: RenamingBody {
  package let wrapped: Op
  /// The names outside, by the op's own.
  private let names: [ByteString: ByteString]

  init(_ wrapped: Op, _ names: [ByteString: ByteString]) {
    self.wrapped = wrapped
    self.names = names
  }

  package var inner: Op? { wrapped }
  package var mayBeBusy: Bool { wrapped.mayBeBusy }

  func nameOutside(_ key: ByteString) -> ByteString { names[key] ?? key }

  /// The renaming for another op, such as this one with arguments.
  package func renaming(_ other: Op) -> any OpBody { RenamedKeysBody(other, names) }

  package func codeForm() throws -> CodeForm? {
    guard let form = try wrapped.codeForm() else { return nil }
    var writer = CodeFormWriter("keys")
    for (own, outside) in names.sorted(by: { $0.key < $1.key }) {
      writer.add(own)
      writer.add(outside)
    }
    writer.add(form.bytes)
    return writer.form(place: form.place) { try form.details() }
  }

  package func start(_ context: OpContext) -> CallState {
    let outside = context.bucket
    let bucket = DataBucket(keys: outside.keys, parent: outside)
    bucket.hide(DataMask([:].merging(names.keys.map { (bucket.key($0), 0) }) { first, _ in first }))
    let gives = Set(wrapped.gives.map(\.name))
    let needs = Set(wrapped.needs.map(\.name))
    var given: [DataKey: FlowValue] = [:]
    for (own, name) in names where needs.contains(own) || !gives.contains(own) {
      let key = bucket.key(name)
      guard let value = context.get(key) else { continue }
      bucket.set(bucket.key(own), outside.shown(value, of: key))
      given[bucket.key(own)] = value
    }
    let end = { [names] (task: FlowTask<Void>) in
      if let error = task.error { return context.end(error) }
      for entry in bucket.entries {
        let own = bucket.keys.name(of: entry.key)
        // A key that it was given, and left as it was.
        if let before = given[entry.key], before == entry.value, !gives.contains(own) { continue }
        let key = names[own].map { bucket.key($0) } ?? entry.key
        context.set(key, bucket.shown(entry.value, of: entry.key))
      }
      context.end()
    }
    let task = context.execute(wrapped, in: bucket, within: nil)
    if task.isConcluded {
      end(task)
    } else {
      task.observe(InnerEnd(task, of: context, end))
    }
    return .suspended
  }
}

/// Ends an op after the one that it executes.
private final class InnerEnd: TaskObserver {
  private let task: FlowTask<Void>
  private let context: OpContext
  private let end: (FlowTask<Void>) -> Void

  init(_ task: FlowTask<Void>, of context: OpContext, _ end: @escaping (FlowTask<Void>) -> Void) {
    self.task = task
    self.context = context
    self.end = end
  }

  // An op that was stopped has ended, and its inner op with it.
  func run() { if context.isOpen { end(task) } }
}
