/// The null of JSON as a value: unlike `FlowValue.null`, a bucket keeps it, and a list may contain it.
///
/// It has no state, so it can be used on any thread. Scripts see it as `json.null`.
package final class JSONNull: OpaqueValue, Sendable {
  /// The only one.
  package static let shared = JSONNull()

  private init() {}

  package var typeName: ByteString { "light userdata" }

  package func logText(limit: Int) -> ByteString { ("null" as ByteString).truncated(to: limit) }

  package func matches(typeName: ByteString) -> Bool {
    typeName == "userdata" || typeName == self.typeName
  }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func plainCopy() -> PlainValue? { PlainValue(.jsonNull) }
}

extension FlowValue {
  /// The null of JSON, for a bucket or a list.
  public static var jsonNull: FlowValue { .opaque(JSONNull.shared) }

  /// Whether it is the null of JSON.
  public var isJSONNull: Bool {
    if case .opaque(let value) = self { value is JSONNull } else { false }
  }
}
