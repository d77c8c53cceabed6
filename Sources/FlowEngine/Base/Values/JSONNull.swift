/// The null of JSON as a value: unlike `FlowValue.null`, a bucket keeps it, and a list may contain it.
///
/// It has no state, so it can be used on any thread. Scripts see it as `json.null`.
public final class JSONNull: OpaqueValue, Sendable {
  /// The only one.
  public static let shared = JSONNull()

  private init() {}

  public var typeName: ByteString { "light userdata" }

  public func logText(limit: Int) -> ByteString { ("null" as ByteString).truncated(to: limit) }

  public func matches(typeName: ByteString) -> Bool {
    typeName == "userdata" || typeName == self.typeName
  }

  public func listCount() -> Int? { nil }

  public func element(at index: Int) -> FlowValue { .null }

  public func plainCopy() -> PlainValue? { PlainValue(.jsonNull) }
}

extension FlowValue {
  /// The null of JSON, for a bucket or a list.
  public static var jsonNull: FlowValue { .opaque(JSONNull.shared) }

  /// Whether it is the null of JSON.
  public var isJSONNull: Bool {
    if case .opaque(let value) = self { value is JSONNull } else { false }
  }
}
