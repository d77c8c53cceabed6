internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The data of a run, for a view that reads it key by key: of one that has ended, or a copy for an op of a kept run,
/// which has to know the keys that the op reads.
private final class ViewedData {
  let bucket: DataBucket
  /// The op, and the run that it reads the data of.
  let reader: (op: OpContext, run: Run)?
  /// How many keys have been read.
  var reads = 0

  init(_ bucket: DataBucket, reader: (op: OpContext, run: Run)? = nil) {
    self.bucket = bucket
    self.reader = reader
  }
}

/// What views of runs' data have in common.
struct RunDataViews {
  fileprivate let metatable: LuaReference
  fileprivate let source: LuaObjectType<ViewedData>
}

extension ScriptHost {
  /// Data with fewer keys is copied at once: the table costs no more than reading a key of the run does.
  private static let copiedKeys = 16

  /// The data of a run: scripts can read it, but setting a field is an error, because the run would never
  /// see the change.
  ///
  /// Much data of a run that has ended, which nothing changes any more, is read key by key, until something
  /// wants all of it.
  func dataView(of run: Run) throws -> LuaReference {
    let views = try runDataViews()
    let data = run.data
    if !run.isConcluded, let op = currentOp, op.notesReads(of: run) {
      let copy = DataBucket(keys: data.keys)
      for entry in data.entries {
        copy.set(entry.key, try shared(entry.value, entry.key, in: data))
      }
      let source = try vm.value(of: ViewedData(copy, reader: (op, run)), views.source)
      if case .reference(let source) = source {
        return try vm.makeView(of: source, metatable: views.metatable)
      }
    }
    if run.isConcluded, data.count > Self.copiedKeys,
      case .reference(let source) = try vm.value(of: ViewedData(data), views.source)
    {
      return try vm.makeView(of: source, metatable: views.metatable)
    }
    return try vm.makeView(of: try table(of: data), metatable: views.metatable)
  }

  private func runDataViews() throws -> RunDataViews {
    if let known = openDataViews { return known }
    let source = try vm.defineObjectType("data", of: ViewedData.self, methods: [:])
    let refuse = bind { host, call in
      let key =
        call.kind(2) == .string
        ? "field '\(call.bytes(2)?.description ?? "")'" : "a key of type \(call.typeName(2))"
      throw host.usage(
        call,
        "can't set \(key): run.data is a copy, which the run never sees; ops set data with "
          + "ctx:set, and start takes the data to begin with")
    }
    let read = bind { host, call in
      guard let data = call.object(1, source), let name = call.bytes(2) else {
        return call.answer(.nil)
      }
      if let (op, run) = data.reader {
        try host.checkMemory(forKey: name)
        op.willRead(run.data.keys.intern(name), of: run)
        return call.answer([try host.value(under: name, in: data.bucket), .boolean(false)])
      }
      data.reads += 1
      let value = try host.value(under: name, in: data.bucket)
      // Many reads cost more than a table does.
      return call.answer([value, .boolean(data.reads * 2 > data.bucket.count)])
    }
    let readAll = bind { host, call in
      guard let data = call.object(1, source) else { return call.answer(.nil) }
      if let (op, run) = data.reader { op.willReadAll(of: run) }
      return call.answer(.reference(try host.table(of: data.bucket)))
    }
    let metatable = try vm.makeViewMetatable(
      refuse: try vm.makeFunction(refuse), read: try vm.makeFunction(read),
      readAll: try vm.makeFunction(readAll))
    let made = RunDataViews(metatable: metatable, source: source)
    openDataViews = made
    return made
  }

  private func value(under name: ByteString, in bucket: DataBucket) throws -> LuaValue {
    // No name that a script looks for becomes a key.
    guard bucket.keys.contains(name) else { return .nil }
    let key = bucket.keys.intern(name)
    guard let value = bucket.ownValue(of: key) else { return .nil }
    return try luaValue(try shared(value, key, in: bucket))
  }

  /// A value that a script may want to change, such as the state of a machine: for a run's data,
  /// the table that it shows.
  @inline(__always)
  func changeable(_ value: LuaValue) throws -> LuaValue {
    openDataViews == nil ? value : try vm.shown(by: value)
  }
}
