/// A value that no line, event or error shows: it prints as `<redacted>`.
///
/// A data bucket stores the plain value and marks the key as secret, so an op that reads it gets
/// the plain value. Anywhere else — in a list, in a table, as an argument — it stays opaque.
/// Confined to the thread of its loop, like the inner value.
package final class SecretValue: OpaqueValue {
  /// The text that every line shows instead of a secret.
  package static let mark: ByteString = "<redacted>"

  /// The inner value; never a secret.
  package let plain: FlowValue

  /// Hides its text as long as the value exists; nil unless a script has it.
  private var holds: SecretHolds?

  /// Makes a secret; a secret of a secret has the same plain value.
  package init(_ value: FlowValue) {
    plain = value.plain
  }

  /// Hides the text as long as this value exists.
  package func hide(on loop: FlowEventLoop) {
    guard holds == nil else { return }
    let holds = SecretHolds(loop.secrets, countedIn: loop.memory)
    holds.add(plain)
    self.holds = holds
  }

  package var typeName: ByteString { "secret" }

  package func logText(limit: Int) -> ByteString { Self.mark.truncated(to: limit) }

  package func matches(typeName: ByteString) -> Bool { typeName == "secret" }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue {
    guard case .opaque(let table) = plain else { return self }
    let copy = try table.copyForRun(copies)
    return copy === table ? self : SecretValue(.opaque(copy))
  }

  /// A copy that is marked as a secret; converted back, it becomes a secret again.
  package func plainCopy() -> PlainValue? {
    guard var copy = plain.plainCopy() else { return nil }
    copy.root = .secret(copy.root)
    return copy
  }
}

extension FlowValue {
  /// Makes a secret of `value`; `.null` stays `.null`.
  package static func secret(_ value: FlowValue) -> FlowValue {
    if value.isNull || value.isSecret { return value }
    return .opaque(SecretValue(value))
  }

  /// Whether no line may show the value.
  @inline(__always)
  package var isSecret: Bool {
    if case .opaque(let value) = self { value is SecretValue } else { false }
  }

  /// The inner value of a secret; any other value is returned unchanged.
  package var plain: FlowValue {
    if case .opaque(let value) = self, let secret = value as? SecretValue {
      secret.plain
    } else {
      self
    }
  }
}

/// A secret in Swift: `Flow("signup").data(["password": FlowSecret("123456")])`.
///
/// A declaration of this type accepts plain values and secrets alike.
///
/// ```swift
/// let run = flow.data(["password": FlowSecret("123456")]).start(on: loop)
/// print(run.summary())  // password: <redacted>
/// ```
public struct FlowSecret<Wrapped: FlowValueConvertible>: FlowValueConvertible,
  CustomStringConvertible,
  CustomReflectable
{
  public static var flowTypeName: String { Wrapped.flowTypeName }

  /// The inner value.
  public let value: Wrapped

  /// Makes a value that no log shows.
  public init(_ value: Wrapped) {
    self.value = value
  }

  public init?(flowValue: FlowValue) {
    guard let value = Wrapped(flowValue: flowValue.plain) else { return nil }
    self.value = value
  }

  public var flowValue: FlowValue { .secret(value.flowValue) }

  /// `<redacted>`, so that printing an object with a secret in it doesn't show the secret.
  public var description: String { SecretValue.mark.description }

  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Coded as a secret in a `FlowValue`; any other encoder gets an error.
extension FlowSecret: Codable where Wrapped: Codable {
  public init(from decoder: any Decoder) throws {
    value = try Wrapped(from: decoder)
  }

  public func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self,
      .init(
        codingPath: encoder.codingPath,
        debugDescription: "a secret is encoded in a FlowValue only"))
  }
}
