/// A value that no line, event or error shows: it prints as `<redacted>`.
///
/// A data bucket stores the plain value and marks the key, so an op that asks for it gets the plain
/// value. Anywhere else — in a list, in a table, as an argument — it stays as opaque as it is here.
/// Confined to the thread of its loop, like the value inside.
public final class SecretValue: OpaqueValue {
  /// What every line shows in place of a secret.
  public static let mark: ByteString = "<redacted>"

  /// The value itself; never a secret.
  public let plain: Value

  /// A secret; one of a secret has the plain value of that one.
  public init(_ value: Value) {
    plain = value.plain
  }

  public var typeName: ByteString { "secret" }

  public func logText(limit: Int) -> ByteString { Self.mark.truncated(to: limit) }

  public func matches(typeName: ByteString) -> Bool { typeName == "secret" }

  public func listCount() -> Int? { nil }

  public func element(at index: Int) -> Value { .null }

  public func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue {
    guard case .opaque(let table) = plain else { return self }
    let copy = try table.copyForRun(copies)
    return copy === table ? self : SecretValue(.opaque(copy))
  }

  /// A copy that is marked as a secret, and becomes one again.
  public func plainCopy() -> PlainValue? {
    guard var copy = plain.plainCopy() else { return nil }
    copy.root = .secret(copy.root)
    return copy
  }
}

extension Value {
  /// A secret of `value`; no value stays none.
  public static func secret(_ value: Value) -> Value {
    if value.isNull || value.isSecret { return value }
    return .opaque(SecretValue(value))
  }

  /// Whether no line may show the value.
  @inline(__always)
  public var isSecret: Bool {
    if case .opaque(let value) = self { value is SecretValue } else { false }
  }

  /// The value inside of a secret; of any other value, the value.
  public var plain: Value {
    if case .opaque(let value) = self, let secret = value as? SecretValue {
      secret.plain
    } else {
      self
    }
  }
}

/// A secret in Swift: `Flow("signup").data(["password": Secret("123456")])`.
///
/// Where a type is asked for, it takes plain values and secrets alike.
public struct Secret<Wrapped: ValueConvertible>: ValueConvertible, CustomStringConvertible,
  CustomReflectable
{
  public static var flowTypeName: ByteString { Wrapped.flowTypeName }

  /// The value itself.
  public let value: Wrapped

  /// A value that no log shows.
  public init(_ value: Wrapped) {
    self.value = value
  }

  public init?(flowValue: Value) {
    guard let value = Wrapped(flowValue: flowValue.plain) else { return nil }
    self.value = value
  }

  public var flowValue: Value { .secret(value.flowValue) }

  /// `<redacted>`, so that printing what holds a secret doesn't show it.
  public var description: String { SecretValue.mark.description }

  public var customMirror: Mirror { Mirror(self, children: []) }
}
