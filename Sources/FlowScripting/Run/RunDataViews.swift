@_spi(Scripting) package import FlowEngine
@_spi(Scripting) package import LuaVM

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

/// The parts that views of runs' data have in common.
private final class RunDataViews: HostService {
  let metatable: LuaReference
  let source: LuaObjectType<ViewedData>

  init(metatable: LuaReference, source: LuaObjectType<ViewedData>) {
    self.metatable = metatable
    self.source = source
  }
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

  private func runDataViews() throws -> RunDataViews { try service { try makeDataViews() } }

  private func makeDataViews() throws -> RunDataViews {
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
    types.viewsData = true
    return RunDataViews(metatable: metatable, source: source)
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
  func changeable(_ value: LuaValue) throws -> LuaValue {
    !types.viewsData ? value : try vm.shown(by: value)
  }

  // MARK: JSON, for files that people and programs read

  // Unlike `json.encode` these have no errors, and show no secrets: a function is its text, and a table within itself too.

  /// Appends the data of a run as an object, in the order of the keys.
  package func appendData(of run: Run, to text: inout JSONText) {
    var values: [(name: ByteString, value: FlowValue)] = run.data.entries.map { entry in
      let value = run.data.isSecret(entry.key) ? FlowValue.secret(entry.value) : entry.value
      return (loop.keys.name(of: entry.key), value)
    }
    values.sort { $0.name < $1.name }
    var writer = DataWriter(host: self, text: text)
    writer.write(object: values)
    text = writer.text
  }

  /// Appends the fields that a script has given to an error, by `ctx:fail` or `error`, as an object;
  /// returns false, and appends nothing, when there are none.
  package func appendFields(of error: FlowError, to text: inout JSONText) -> Bool {
    guard let table = table(of: error), let pairs = try? vm.pairs(of: table) else { return false }
    var values: [(name: ByteString, value: FlowValue)] = []
    for (key, value) in pairs {
      guard case .string(let name) = key, !Self.errorFields.contains(name) else { continue }
      values.append((name, FlowValue(value)))
    }
    if values.isEmpty { return false }
    values.sort { $0.name < $1.name }
    var writer = DataWriter(host: self, text: text)
    writer.write(object: values)
    text = writer.text
    return true
  }
}

private struct DataWriter {
  let host: ScriptHost
  var text: JSONText
  /// The tables that enclose the present one.
  private var around: [UInt] = []

  /// A deeper table is shown as the text of a line.
  private static let depthLimit = 100

  init(host: ScriptHost, text: JSONText) {
    self.host = host
    self.text = text
  }

  mutating func write(object values: [(name: ByteString, value: FlowValue)]) {
    text.append(raw: "{")
    for (number, (name, value)) in values.enumerated() {
      if number > 0 { text.append(raw: ",") }
      text.append(host.loop.secrets.redacted(name))
      text.append(raw: ":")
      write(value)
    }
    text.append(raw: "}")
  }

  private mutating func write(_ value: FlowValue) {
    switch value {
    case .null: text.append(raw: "null")
    case .boolean(let flag): text.append(raw: flag ? "true" : "false")
    case .integer(let number) where isShown(value): text.append(number)
    case .number(let number) where isShown(value): text.append(number)
    case .opaque where !value.isSecret: write(opaque: value)
    default: text.append(host.loop.secrets.redacted(value.logText))
    }
  }

  /// Whether a number isn't the text of a secret.
  private func isShown(_ number: FlowValue) -> Bool {
    let text = number.logText
    return host.loop.secrets.redacted(text) == text
  }

  private mutating func write(opaque value: FlowValue) {
    let vm = host.vm
    guard case .reference(let table)? = try? host.luaValue(value) else {
      text.append(host.loop.secrets.shownText(of: value))
      return
    }
    let identity = vm.identity(of: table)
    if vm.isJSONNull(table) {
      text.append(raw: "null")
    } else if table.kind == .table, around.count < Self.depthLimit, !around.contains(identity),
      let pairs = try? vm.pairs(of: table)
    {
      around.append(identity)
      write(pairs, isList: vm.listCount(table) != nil, mark: vm.jsonMark(of: table))
      around.removeLast()
    } else {
      text.append(host.loop.secrets.shownText(of: value))
    }
  }

  private mutating func write(
    _ pairs: [(key: LuaValue, value: LuaValue)], isList: Bool, mark: JSONMark
  ) {
    guard isList, !pairs.isEmpty || mark == .array else {
      var values = pairs.map { (name: FlowValue($0.key).logText, value: FlowValue($0.value)) }
      values.sort { $0.name < $1.name }
      write(object: values)
      return
    }
    var elements: [(index: Int64, value: LuaValue)] = []
    for case (.integer(let index), let value) in pairs { elements.append((index, value)) }
    elements.sort { $0.index < $1.index }
    text.append(raw: "[")
    for (number, element) in elements.enumerated() {
      if number > 0 { text.append(raw: ",") }
      write(FlowValue(element.value))
    }
    text.append(raw: "]")
  }
}
