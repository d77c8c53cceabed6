/// A key that a typed op declares: an `Input` or an `Output`.
public protocol OpKey: Sendable {
  /// Its name in the data bucket.
  var name: ByteString { get }
  /// The declared type, as `ValueType` parses it.
  var typeName: ByteString { get }
}

/// An input that a typed op declares: a key of the data bucket with its Swift type.
///
/// `Input<String>("image")` must be present when the op starts; `Input<Int?>("quality")` may be
/// absent, and so may `Input("quality", default: 80)`, which then has its default value.
public struct Input<Content: ValueConvertible & Sendable>: OpKey {
  public let name: ByteString
  /// The value when the key is absent; nil when the key must be present.
  public let defaultValue: Content?

  /// Declares a key that must be present.
  public init(_ name: ByteString) {
    self.name = name
    defaultValue = nil
  }

  /// Declares a key that may be absent, with its default value.
  public init(_ name: ByteString, default defaultValue: Content) {
    self.name = name
    self.defaultValue = defaultValue
  }

  public var typeName: ByteString {
    let name = Content.flowTypeName
    return defaultValue == nil || name.bytes.last == UInt8(ascii: "?") ? name : name + "?"
  }
}

/// An output that a typed op declares: a key of the data bucket with its Swift type.
///
/// It must be set when the op ends, unless it is an optional: `Output<String?>("note")`.
public struct Output<Content: ValueConvertible & Sendable>: OpKey {
  public let name: ByteString

  /// Declares a key that the op gives.
  public init(_ name: ByteString) {
    self.name = name
  }

  public var typeName: ByteString { Content.flowTypeName }
}

/// An input of any type.
protocol InputKey: OpKey {
  /// The Swift value under the input's key in a bucket.
  func content(in bucket: DataBucket, _ key: Key) throws(FlowError) -> any Sendable
}

extension Input: InputKey {
  func content(in bucket: DataBucket, _ key: Key) throws(FlowError) -> any Sendable {
    guard let value = bucket.get(key) else {
      if let defaultValue { return defaultValue }
      if let content = Content(flowValue: .null) { return content }
      throw bucket.missingInput(key)
    }
    guard let content = Content(flowValue: value) else {
      throw .mismatchedInput(
        name, bucket.shown(value, of: key), wanted: Content.flowWantedName,
        hiding: bucket.keys.secrets)
    }
    return content
  }
}

extension DataBucket {
  /// The value under a declared output; nil when it is absent or of another type.
  public subscript<Content>(key: Output<Content>) -> Content? { value(key.name) }

  /// The value under a declared input, or its default; nil when it is of another type, or absent
  /// without a default.
  public subscript<Content>(key: Input<Content>) -> Content? {
    guard let value = self[key.name] else { return key.defaultValue }
    return Content(flowValue: value)
  }
}

extension Flow {
  /// Adds initial data, under the key of an op's input; a later value replaces an earlier one.
  @discardableResult
  public func data<Content>(_ key: Input<Content>, _ value: Content) -> Flow {
    data(key.name, value.flowValue)
  }
}
