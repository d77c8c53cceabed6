/// A key that a typed op declares: an `Input` or an `Output`.
public protocol OpKey: Sendable {
  /// What it is called in the data bucket.
  var name: ByteString { get }
  /// The declared type, as `ValueType` parses it.
  var typeName: ByteString { get }
}

/// An input that a typed op declares: a key of the data bucket with its Swift type.
///
/// `Input<String>("image")` has to be there when the op starts; `Input<Int?>("quality")` may be
/// absent, and so may `Input("quality", default: 80)`, whose value is the default then.
public struct Input<Content: ValueConvertible & Sendable>: OpKey {
  public let name: ByteString
  /// What stands for an absent value; nil when the value has to be there.
  public let defaultValue: Content?

  /// A key that has to be there.
  public init(_ name: ByteString) {
    self.name = name
    defaultValue = nil
  }

  /// A key that may be absent, with the value that stands for it then.
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
/// It has to be set when the op ends, unless it is an optional: `Output<String?>("note")`.
public struct Output<Content: ValueConvertible & Sendable>: OpKey {
  public let name: ByteString

  /// A key that the op gives.
  public init(_ name: ByteString) {
    self.name = name
  }

  public var typeName: ByteString { Content.flowTypeName }
}

/// An input whatever its type.
protocol InputKey: OpKey {
  /// The Swift value of what a bucket holds under the input's key.
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
  /// What an op has left, or will leave, under a declared output; nil when it is absent or of another
  /// type.
  public subscript<Content>(key: Output<Content>) -> Content? { value(key.name) }

  /// What stands under a declared input, or its default; nil when it is of another type, or absent
  /// without a default.
  public subscript<Content>(key: Input<Content>) -> Content? {
    guard let value = self[key.name] else { return key.defaultValue }
    return Content(flowValue: value)
  }
}

extension Flow {
  /// Data to begin with, under the key of an op's input; a later value replaces an earlier one.
  @discardableResult
  public func data<Content>(_ key: Input<Content>, _ value: Content) -> Flow {
    data(key.name, value.flowValue)
  }
}
