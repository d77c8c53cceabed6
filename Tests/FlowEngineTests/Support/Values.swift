@_spi(Scripting) import FlowEngine

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// An opaque value with a type name of its own and the name of a base.
final class TestOpaque: OpaqueValue {
  let typeName: ByteString
  let base: ByteString

  init(type: ByteString, base: ByteString) {
    typeName = type
    self.base = base
  }

  func logText(limit: Int) -> ByteString { typeName }
  func matches(typeName: ByteString) -> Bool { typeName == self.typeName || typeName == base }
  func listCount() -> Int? { nil }
  func element(at index: Int) -> FlowValue { .null }
  func plainCopy() -> PlainValue? { nil }
}

func list(_ items: [String]) -> FlowValue { items.flowValue }
