package import FlowEngine
@_spi(Scripting) package import LuaVM

// Values of a run in JSON, for files that people and programs read. Unlike `json.encode` it has no
// errors, and shows no secrets: a function is its text, and a table within itself too.
extension ScriptHost {
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
    default: text.append(host.loop.secrets.redacted(value.logTextBytes))
    }
  }

  /// Whether a number isn't the text of a secret.
  private func isShown(_ number: FlowValue) -> Bool {
    let text = number.logTextBytes
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
      var values = pairs.map { (name: FlowValue($0.key).logTextBytes, value: FlowValue($0.value)) }
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
