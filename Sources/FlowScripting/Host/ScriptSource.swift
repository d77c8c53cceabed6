public import FlowEngine

/// The text of a script, or the file that has it.
///
/// ```swift
/// let first = try await ScriptHost.run(script: "return 42")
/// let second = try await ScriptHost.run(script: .file("/srv/rules/order.lua"))
/// ```
public struct ScriptSource: Sendable, ExpressibleByStringLiteral {
  enum Content: Sendable {
    case text(ByteString, name: String)
    case file(ByteString)
  }

  let content: Content

  private init(_ content: Content) {
    self.content = content
  }

  /// A script as a text; a literal is one, too.
  ///
  /// - Parameters:
  ///   - text: The script.
  ///   - name: The name of the script in messages.
  /// - Returns: The source.
  public static func text(_ text: some FlowText, name: String = "script") -> ScriptSource {
    ScriptSource(.text(text.byteString, name: name))
  }

  /// A script in a file.
  public static func file(_ path: some FlowText) -> ScriptSource {
    ScriptSource(.file(path.byteString))
  }

  public init(stringLiteral text: String) {
    self.init(.text(ByteString(text), name: "script"))
  }
}

/// The results of a script that has run; see `ScriptHost.run`.
///
/// ```swift
/// let result = try await ScriptHost.run(script: "return 6 * (...).number", data: ["number": 7])
/// print(try result.value(as: Int.self))
/// ```
public struct ScriptResult: Sendable {
  /// The values that the script has returned, as copies.
  public let values: [PlainValue]
  /// The data at the end, which the script may have changed, as copies.
  public let data: PlainValue

  /// A returned value, converted.
  ///
  /// - Parameters:
  ///   - index: The index of the value, from 0.
  ///   - type: The type to convert it to.
  /// - Returns: The value.
  /// - Throws: A `FlowError` that names the value if it is of another type, or missing.
  public func value<Converted: FlowValueConvertible>(
    _ index: Int = 0, as type: Converted.Type = Converted.self
  ) throws(FlowError) -> Converted {
    let value = values.indices.contains(index) ? values[index].flowValue : .null
    return try Self.convert(value, "the script's result \(index + 1)")
  }

  /// A returned value as anything `Decodable`.
  ///
  /// - Throws: A `FlowError` that names the value, the path of the part that is wrong, and what was expected.
  @_disfavoredOverload
  public func value<Content: Decodable>(
    _ index: Int = 0, as type: Content.Type = Content.self
  ) throws(FlowError) -> Content {
    let value = values.indices.contains(index) ? values[index].flowValue : .null
    return try value.decoded(of: "the script's result \(index + 1)")
  }

  /// A field of the data at the end, converted; see `value`.
  public func data<Converted: FlowValueConvertible>(
    _ key: some FlowText, as type: Converted.Type = Converted.self
  ) throws(FlowError) -> Converted {
    try Self.convert(data.flowValue[key] ?? .null, Self.subject(key))
  }

  /// A field of the data at the end as anything `Decodable`; see `value`.
  @_disfavoredOverload
  public func data<Content: Decodable>(
    _ key: some FlowText, as type: Content.Type = Content.self
  ) throws(FlowError) -> Content {
    try (data.flowValue[key] ?? .null).decoded(of: Self.subject(key))
  }

  /// All data at the end as anything `Decodable` with named properties; see `value`.
  public func data<Content: Decodable>(
    as type: Content.Type = Content.self
  ) throws(FlowError) -> Content {
    try data.flowValue.decoded(of: "the script's data")
  }

  private static func subject(_ key: some FlowText) -> ByteString {
    "'\(key.byteString)' in the script's data"
  }

  private static func convert<Converted: FlowValueConvertible>(
    _ value: FlowValue, _ subject: ByteString
  ) throws(FlowError) -> Converted {
    if let converted = Converted(flowValue: value) { return converted }
    throw FlowError(
      .mismatchedOutput,
      "\(subject) is \(value.typeName): \(Converted.flowWantedName) expected")
  }
}
