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
    let name = ByteString(
      definition.configuration.name ?? String(describing: type(of: definition)))
    let keys = definition.declaredKeys
    self.name = name
    inputs = keys.compactMap { $0 as? any InputKey }
    outputs = keys.filter { !($0 is any InputKey) }
    inputNames = inputs.map { ByteString($0.name) }
    outputNames = outputs.map { ByteString($0.name) }
    needs = inputs.map { Self.declaration($0, of: name) }
    gives = outputs.map { Self.declaration($0, of: name) }
    for keys in [needs, gives] where Set(keys.map(\.nameBytes)).count < keys.count {
      misuse("\(name) declares two inputs or two outputs under one name")
    }
  }

  private static func declaration(
    _ key: any OpKey, of op: ByteString
  ) -> Declaration {
    do {
      return Declaration(ByteString(key.name), try FlowValueType.parse(ByteString(key.typeName)))
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
  subscript<Content>(key: Input<Content>) -> Content {
    for index in names.indices where names[index] == key.nameBytes {
      if let content = values[index] as? Content { return content }
    }
    misuse("'\(key.name)' was read, which isn't an input that the op declares")
  }
}
