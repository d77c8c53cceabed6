/// The name and the declared keys of a typed op.
final class OpSchema {
  let name: ByteString
  let inputs: [any InputKey]
  let outputs: [any OpKey]
  let needs: [Declaration]
  let gives: [Declaration]
  // The keys of the loop that used it last.
  private var table: KeyTable?
  private var inputKeys: [DataKey] = []
  private var outputKeys: [DataKey] = []
  private let inputNames: [ByteString]
  private let outputNames: [ByteString]

  init(_ definition: some OpDefinition) {
    let name =
      definition.configuration.name ?? ByteString(String(describing: type(of: definition)))
    let keys = definition.declaredKeys
    self.name = name
    inputs = keys.compactMap { $0 as? any InputKey }
    let read = keys.filter { $0 is any StreamInputKey }
    outputs = keys.filter { !($0 is any InputKey) && !($0 is any StreamInputKey) }
    inputNames = inputs.map(\.name)
    outputNames = outputs.map(\.name)
    needs = (inputs + read).map { Self.declaration($0, of: name) }
    gives = outputs.map { Self.declaration($0, of: name) }
    for keys in [needs, gives] where Set(keys.map(\.name)).count < keys.count {
      misuse("\(name) declares two inputs or two outputs under one name")
    }
  }

  private static func declaration(
    _ key: any OpKey, of op: ByteString
  ) -> Declaration {
    do {
      return Declaration(key.name, try FlowValueType.parse(ByteString(key.typeName)))
    } catch {
      misuse("'\(key.name)' of \(op) was declared with a wrong type: \(error)")
    }
  }

  /// Reads the inputs of an execution as Swift values.
  func read(_ context: OpContext) throws(FlowError) -> OpInputs {
    let bucket = context.bucket
    resolve(bucket.keys)
    var values: ContiguousArray<any Sendable> = []
    values.reserveCapacity(inputs.count)
    for index in inputs.indices {
      values.append(try inputs[index].content(in: bucket, inputKeys[index]))
    }
    return OpInputs(names: inputNames, values: values)
  }

  /// The key of an output.
  func key(_ name: ByteString, in keys: KeyTable) -> DataKey {
    resolve(keys)
    for index in outputNames.indices where outputNames[index] == name { return outputKeys[index] }
    return keys.intern(name)
  }

  private func resolve(_ keys: KeyTable) {
    if table === keys { return }
    table = keys
    inputKeys = inputNames.map { keys.intern($0) }
    outputKeys = outputNames.map { keys.intern($0) }
  }
}

/// The inputs of one execution.
struct OpInputs: Sendable {
  let names: [ByteString]
  let values: ContiguousArray<any Sendable>

  /// The value of an input.
  subscript<Content>(key: OpInput<Content>) -> Content {
    for index in names.indices where names[index] == key.name {
      if let content = values[index] as? Content { return content }
    }
    misuse("'\(key.name)' was read, which isn't an input that the op declares")
  }
}

/// The way in which the content of a declared key is stored in a data bucket.
protocol ContentForm<Content>: Sendable {
  associatedtype Content

  /// The name of the type in declarations.
  static var typeName: ByteString { get }
  /// The name of the expected type in a line.
  static var wantedName: ByteString { get }
  /// The content in a value; nil when the value is of another type.
  ///
  /// - Throws: An error that describes the part of the value that is of another type.
  static func content(of value: FlowValue) throws -> Content?
  /// The value of a content.
  static func value(of content: Content) throws -> FlowValue
}

/// A type that defines its conversion.
enum ConvertibleForm<Content: FlowValueConvertible>: ContentForm {
  static var typeName: ByteString { ByteString(Content.flowTypeName) }
  static var wantedName: ByteString { ByteString(Content.flowWantedName) }

  static func content(of value: FlowValue) -> Content? { Content(flowValue: value) }
  static func value(of content: Content) -> FlowValue { content.flowValue }
}

/// A type that is encoded and decoded.
enum CodableForm<Content: Codable>: ContentForm {
  static var typeName: ByteString { Content.self is any StandardOptional.Type ? "any?" : "any" }
  static var wantedName: ByteString { ByteString(String(describing: Content.self)) }

  static func content(of value: FlowValue) throws -> Content? {
    try value.decoded(as: Content.self)
  }
  static func value(of content: Content) throws -> FlowValue { try FlowValue(encoding: content) }
}

/// A Swift object.
enum ObjectForm<Content>: ContentForm {
  static var typeName: ByteString { Content.self is any StandardOptional.Type ? "any?" : "any" }
  static var wantedName: ByteString { ByteString(String(describing: Content.self)) }

  static func content(of value: FlowValue) -> Content? {
    if value.isNull { return (Content.self as? any StandardOptional.Type)?.absent as? Content }
    return value.object(as: Content.self)
  }

  static func value(of content: Content) -> FlowValue {
    guard let optional = content as? any StandardOptional else { return .object(content) }
    return optional.anyContent.map { .object($0) } ?? .null
  }
}

/// A Sendable form of an op, which any thread may use, for example from a global constant: makes a new op for each
/// flow and run.
///
/// ```swift
/// let GreetOp = OpTemplate("GreetOp", needs: ["name": "string"]) { context in
///   context.log("Hello, \(try context.value("name", as: String.self))!")
/// }
/// let greetAll = OpTemplate {
///   Flow("greetAll").addGrouped(GreetOp, GroupDispatcher(input: "names"))
/// }
/// ```
///
/// An `Op` itself is confined to its thread. Values of typed ops are Sendable when their properties are, and
/// need no template.
public struct OpTemplate: OpConvertible, Sendable {
  private let make: @Sendable () -> Op

  /// Makes a template of any op, flow or machine.
  ///
  /// - Parameter make: Makes the op; called for each flow and run, on their thread.
  public init(_ make: @escaping @Sendable () -> any OpConvertible) {
    self.make = { make().makeOp() }
  }

  /// Makes a template of an op that is a closure; see `Op.init` for the parameters.
  public init(
    _ name: some FlowText, doc: (any FlowText)? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: @escaping @Sendable (OpContext) throws -> Void
  ) {
    self.init {
      Op(
        name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
        primaryOutput: primaryOutput, file: file, line: line, body: body)
    }
  }

  /// Makes a template of an op that is an `async` closure; see `Op.init` for the parameters, and for how such
  /// bodies run.
  public init(
    _ name: some FlowText, doc: (any FlowText)? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: nonisolated(nonsending) @escaping @Sendable (OpContext) async throws -> Void
  ) {
    self.init {
      Op(
        name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
        primaryOutput: primaryOutput, file: file, line: line, body: body)
    }
  }

  public func makeOp() -> Op { make() }
}
