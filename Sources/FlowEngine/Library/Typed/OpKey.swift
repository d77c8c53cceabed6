/// A key that a typed op declares: an `Input` or an `Output`.
package protocol OpKey: Sendable {
  /// Its name in the data bucket.
  var name: ByteString { get }
  /// The declared type, as `FlowValueType` parses it.
  var typeName: String { get }
}

/// An input that a typed op declares: a key of the data bucket with its Swift type.
///
/// `Input<String>("image")` must be present when the op starts; `Input<Int?>("quality")` may be
/// absent, and so may `Input("quality", default: 80)`, which then has its default value. A type that
/// is `FlowValueConvertible` is converted by itself, any other one that is `Codable` is decoded.
///
/// ```swift
/// struct HalfOp: TypedOp {
///   let width = Input<Int>("width")
///   let half = Output<Int>("half")
///
///   func run(_ data: OpData<HalfOp>) throws { data.half = data.width / 2 }
/// }
/// ```
public struct OpInput<Content: Sendable>: OpKey, Sendable {
  package let name: ByteString
  /// The value when the key is absent; nil when the key must be present.
  package let defaultValue: Content?
  let form: any ContentForm<Content>.Type

  private init(_ name: some FlowText, _ form: any ContentForm<Content>.Type, _ value: Content?) {
    self.name = name.byteString
    self.form = form
    defaultValue = value
  }

  package var typeName: String {
    let name = form.typeName.description
    return defaultValue == nil || name.hasSuffix("?") ? name : name + "?"
  }
}

extension OpInput where Content: FlowValueConvertible {
  /// Declares a key that must be present, or has a default value.
  public init(_ name: some FlowText, default defaultValue: Content? = nil) {
    self.init(name, ConvertibleForm<Content>.self, defaultValue)
  }
}

extension OpInput where Content: Codable {
  /// Declares a key that must be present, or has a default value.
  @_disfavoredOverload
  public init(_ name: some FlowText, default defaultValue: Content? = nil) {
    self.init(name, CodableForm<Content>.self, defaultValue)
  }
}

extension OpInput {
  /// Declares a key that must be present, with a Swift object of any type.
  ///
  /// The type is Sendable, since one declaration also serves a `ConcurrentTypedOp`, which reads the object on
  /// another thread. An op on the loop's thread reads an object of any other class with `OpContext.object`:
  /// `try data.context.object("session", as: Session.self)`.
  public init(object name: some FlowText) { self.init(name, ObjectForm<Content>.self, nil) }
}

extension OpInput {
  /// Declares a key that must be present, unless its type is an optional or it has a default value.
  public init(_ key: FlowKey<Content>, default defaultValue: Content? = nil) {
    self.init(key.name, key.form, defaultValue)
  }
}

/// An output that a typed op declares: a key of the data bucket with its Swift type.
///
/// It must be set when the op ends, unless it is an optional: `Output<String?>("note")`. A type that
/// is `FlowValueConvertible` is converted by itself, any other one that is `Codable` is encoded.
///
/// ```swift
/// struct LengthOp: TypedOp {
///   let text = Input<String>("text")
///   let length = Output<Int>("length")
///
///   func run(_ data: OpData<LengthOp>) throws { data.length = data.text.count }
/// }
/// ```
public struct OpOutput<Content: Sendable>: OpKey, Sendable {
  package let name: ByteString
  let form: any ContentForm<Content>.Type

  private init(_ name: some FlowText, _ form: any ContentForm<Content>.Type) {
    self.name = name.byteString
    self.form = form
  }

  package var typeName: String { form.typeName.description }
}

extension OpOutput where Content: FlowValueConvertible {
  /// Declares a key that the op gives.
  public init(_ name: some FlowText) { self.init(name, ConvertibleForm<Content>.self) }
}

extension OpOutput where Content: Codable {
  /// Declares a key that the op gives.
  @_disfavoredOverload
  public init(_ name: some FlowText) { self.init(name, CodableForm<Content>.self) }
}

extension OpOutput {
  /// Declares a key that the op gives, with a Swift object of any type.
  public init(object name: some FlowText) { self.init(name, ObjectForm<Content>.self) }
}

extension OpOutput {
  /// Declares a key that the op gives.
  public init(_ key: FlowKey<Content>) { self.init(key.name, key.form) }
}

/// An input of any type.
protocol InputKey: OpKey {
  /// The Swift value under the input's key in a bucket.
  func content(in bucket: DataBucket, _ key: DataKey) throws(FlowError) -> any Sendable
}

extension OpInput: InputKey {
  func content(in bucket: DataBucket, _ key: DataKey) throws(FlowError) -> any Sendable {
    guard let value = bucket.get(key) else {
      if let defaultValue { return defaultValue }
      if let content = try? form.content(of: .null) { return content }
      throw bucket.missingInput(key)
    }
    do {
      if let content = try form.content(of: value) { return content }
    } catch {
      throw bucket.mismatchedInput(key, value, error)
    }
    throw .mismatchedInput(
      name, bucket.shown(value, of: key), wanted: form.wantedName, hiding: bucket.keys.secrets)
  }
}

extension DataBucket {
  /// The value under a declared output; nil when it is absent or of another type.
  public subscript<Content>(key: OpOutput<Content>) -> Content? {
    self[key.name].flatMap { try? key.form.content(of: $0) }
  }

  /// The value under a declared input, or its default; nil when it is of another type, or absent
  /// without a default.
  package subscript<Content>(key: OpInput<Content>) -> Content? {
    guard let value = self[key.name] else { return key.defaultValue }
    return try? key.form.content(of: value)
  }
}

extension Flow {
  /// Adds initial data, under the key of an op's input; a later value replaces an earlier one.
  @discardableResult
  package func data<Content: FlowValueConvertible>(_ key: OpInput<Content>, _ value: Content)
    -> Flow
  {
    data(key.name, value.flowValue)
  }

  /// Adds initial data, under the key of an op's input; a later value replaces an earlier one.
  ///
  /// - Throws: An `EncodingError` when a part of the value has no form in a bucket.
  @discardableResult @_disfavoredOverload
  package func data<Content>(_ key: OpInput<Content>, _ value: Content) throws -> Flow {
    data(key.name, try key.form.value(of: value))
  }
}
