internal import FlowEngine

/// An op, flow or machine as a command of a script: its needs are options.
struct Command {
  /// A need that words can give.
  struct Parameter {
    let key: ByteString
    let type: FlowValueType
    let wording: FlowValueType.Wording
    let doc: ByteString?
    /// The value without an option, of the flow's data.
    let preset: FlowValue?

    /// The option without the dashes.
    var name: ByteString { key.replacing(UInt8(ascii: "_"), with: UInt8(ascii: "-")) }
    /// Whether words have to give it.
    var isRequired: Bool { !type.isOptional && preset == nil && wording != .flag }
    /// How a value is shown in texts: `INTEGER`, `FILE…`.
    var form: ByteString {
      let name = type.choices.isEmpty ? type.expected(insteadOf: "") : "value"
      let word = ByteString(name.bytes.prefix { $0 != UInt8(ascii: " ") }).uppercased
      return wording == .words ? word + "…" : word
    }
  }

  let op: Op
  /// nil: the script has only this one, and its name isn't written.
  let name: ByteString?
  let parameters: [Parameter]
  /// The one that words without an option give.
  let primary: Parameter?
  /// The needs that no word can give.
  let others: [Declaration]

  init(_ op: Op, isOnly: Bool) {
    self.op = op
    name = isOnly ? nil : Self.name(of: op)
    let presets = (op as? Flow)?.ownData ?? []
    var (parameters, others): ([Parameter], [Declaration]) = ([], [])
    for need in op.needs {
      let preset = presets.last { $0.name == need.name }?.value
      let name = Parameter(
        key: need.name, type: need.type, wording: .word, doc: need.doc, preset: preset
      ).name
      let isTaken = name == "help" || parameters.contains { $0.name == name }
      guard let wording = need.type.wording, Self.isName(need.name), !isTaken else {
        others.append(need)
        continue
      }
      parameters.append(
        Parameter(
          key: need.name, type: need.type, wording: wording, doc: need.doc, preset: preset))
    }
    self.parameters = parameters
    self.others = others
    primary = parameters.first { $0.key == op.primaryInput && $0.wording != .flag }
  }

  /// `BuildSiteOp` as `build-site`.
  static func name(of op: Op) -> ByteString {
    var bytes = op.name.bytes[...]
    if bytes.count > 2, bytes.suffix(2).elementsEqual("Op".bytes) { bytes = bytes.dropLast(2) }
    func isUpper(_ byte: UInt8) -> Bool { (65...90).contains(byte) }
    func isWordEnd(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
    var name: [UInt8] = []
    var before: UInt8 = 45
    for (index, byte) in zip(bytes.indices, bytes) {
      let isBeforeLower =
        bytes.dropFirst(index - bytes.startIndex + 1).first.map(isWordEnd) ?? false
      if isUpper(byte), isWordEnd(before) || isUpper(before) && isBeforeLower { name.append(45) }
      name.append(byte == 95 || byte == 32 ? 45 : isUpper(byte) ? byte + 32 : byte)
      before = byte
    }
    return ByteString(name)
  }

  private static func isName(_ key: ByteString) -> Bool {
    key.bytes.first.map { $0 == 95 || (65...90).contains($0) || (97...122).contains($0) } == true
      && key.bytes.allSatisfy {
        $0 == 95 || (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
      }
  }
}

extension ByteString {
  fileprivate func replacing(_ byte: UInt8, with other: UInt8) -> ByteString {
    ByteString(bytes.map { $0 == byte ? other : $0 })
  }

  fileprivate var uppercased: ByteString {
    ByteString(bytes.map { (97...122).contains($0) ? $0 - 32 : $0 })
  }
}
