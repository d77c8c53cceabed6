/// The code of an op in a form that can be compared with the code of an earlier process.
package struct CodeForm {
  /// The form: equal bytes mean equal code. They may contain the text of secrets, so they are for
  /// hashing only.
  package let bytes: [UInt8]
  /// Where the code was written, such as `ship.lua:31`; nil when that isn't known.
  package let place: ByteString?
  /// Lists what the code consists of, for people. Called on the loop's thread, and only where the form is new or differs
  /// from an earlier one.
  package let details: () throws -> [CodeDetail]

  /// Makes a form of bytes.
  package init(_ bytes: [UInt8], place: (any FlowText)? = nil) {
    self.init(bytes, place: place?.byteString, details: { [] })
  }

  /// Makes a form with a list of what the code consists of.
  package init(
    _ bytes: [UInt8], place: ByteString?, details: @escaping () throws -> [CodeDetail]
  ) {
    self.bytes = bytes
    self.place = place
    self.details = details
  }
}

/// Something that code consists of.
package struct CodeDetail {
  package enum Content {
    /// A number or another value that may be shown, as text.
    case shown(ByteString)
    /// Anything else, which may be a secret: it is only compared.
    case hidden([UInt8])
  }

  /// The words for it: `local 'budget'`; empty for the function itself.
  package let name: ByteString
  package let content: Content

  package init(name: ByteString, content: Content) {
    self.name = name
    self.content = content
  }
}

/// Code of a host that a blueprint holds: an op's body, a machine's functions, a callback.
package protocol CodeHolder: AnyObject {
  /// The form of the code, as it is now; nil, the default, when nothing can be compared but the op's
  /// name. Called on the loop's thread; it takes microseconds for a function of a script, and longer
  /// when the function names modules, whose files it may read.
  func codeForm() throws -> CodeForm?
}

extension CodeHolder {
  /// Nothing can be compared.
  package func codeForm() throws -> CodeForm? { nil }
}

/// A value whose plain copy may lack something, such as metatables.
package protocol FormedValue: OpaqueValue {
  /// The plain copy, nil where the value can't be compared, and the form that counts instead of a copy that lacks
  /// something.
  func compared() -> (copy: PlainValue?, form: CodeForm?)
}

/// A part of the code of an op without code of its own: of a flow, a machine or a decorator.
package enum CodePart {
  /// Part of the structure, such as the name of a step.
  case text(ByteString)
  /// An op within it, or code that it holds.
  case code(any CodeHolder)
  /// A value of a setting, as a flow's data.
  case value(FlowValue)
}

/// Writes the fields of a form: each has its length, so that different fields make different bytes.
package struct CodeFormWriter {
  private var bytes: [UInt8]

  /// Begins a form of something written in Swift.
  package init(_ kind: ByteString) {
    bytes = [UInt8(ascii: "F"), UInt8(ascii: "N"), 1]
    add(kind)
  }

  /// The form of what was added.
  package func form(
    place: ByteString? = nil, details: @escaping () throws -> [CodeDetail] = { [] }
  ) -> CodeForm { CodeForm(bytes, place: place, details: details) }

  /// Adds bytes.
  package mutating func add(_ text: ByteString) { add(text.bytes) }

  package mutating func add(_ field: [UInt8]) {
    var count = field.count
    while count >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: count) | 0x80)
      count >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: count))
    bytes += field
  }

  /// Adds text that may be absent.
  package mutating func add(_ text: ByteString?) {
    add(text != nil)
    if let text { add(text) }
  }

  package mutating func add(_ number: Int) { add(ByteString(String(number))) }

  /// Adds a number, by its bits.
  package mutating func add(_ number: Double) {
    add(ByteString(String(number.bitPattern, radix: 16)))
  }

  package mutating func add(_ flag: Bool) { add([flag ? 1 : 0]) }
}
