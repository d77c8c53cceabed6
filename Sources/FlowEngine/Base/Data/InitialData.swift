/// The data that a run begins with, of values of any types, in order.
///
/// ```swift
/// let run = op.start(on: loop, data: ["article": "apples", "amount": 3, "urgent": isUrgent])
/// ```
///
/// A list or table of mixed types is written as a `FlowValue`: `["limits": ["n": 3, "x": 0.5] as FlowValue]`.
public struct InitialData: ExpressibleByDictionaryLiteral {
  /// The values by the bytes of their keys; of two under one key the later one counts.
  package let entries: [(name: ByteString, value: FlowValue)]

  /// Makes data of values in order; of two under one key the later one counts.
  public init(_ entries: [(name: String, value: FlowValue)]) {
    self.entries = entries.map { (ByteString($0.name), $0.value) }
  }

  /// Makes data of values in order, whose keys may have any bytes.
  package init(bytes entries: [(name: ByteString, value: FlowValue)]) {
    self.entries = entries
  }

  public init(dictionaryLiteral elements: (String, any FlowValueConvertible)...) {
    entries = elements.map { (ByteString($0), $1.flowValue) }
  }

  /// Makes data of a dictionary, in the order of its keys.
  public init(_ dictionary: [String: any FlowValueConvertible]) {
    entries = dictionary.map { (ByteString($0), $1.flowValue) }.sorted { $0.0 < $1.0 }
  }

  /// Makes data of a value with named properties, such as a structure that is `Encodable`: each
  /// property is a key.
  ///
  /// - Throws: An `EncodingError` when a property has no form in a bucket, or the value is encoded
  ///   as anything but named properties.
  public init(encoding content: some Encodable) throws {
    guard case .opaque(let table) = try FlowValueEncoder().encode(content),
      let map = table as? MapValue, map.numbered.isEmpty
    else {
      throw EncodingError.invalidValue(
        content,
        .init(codingPath: [], debugDescription: "data of a run has to have named properties"))
    }
    entries = map.fields
  }
}
