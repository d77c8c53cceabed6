// Types composed of others.

/// nil represents an absent value; the null of JSON is read as nil, too.
extension Optional: FlowValueConvertible where Wrapped: FlowValueConvertible {
  public static var flowTypeName: String { Wrapped.flowTypeName + "?" }
  public static var flowWantedName: String { Wrapped.flowWantedName + "?" }

  public init?(flowValue: FlowValue) {
    if flowValue.isNull || (flowValue.isJSONNull && Wrapped(flowValue: flowValue) == nil) {
      self = .none
    } else if let value = Wrapped(flowValue: flowValue) {
      self = .some(value)
    } else {
      return nil
    }
  }

  public var flowValue: FlowValue { self?.flowValue ?? .null }
}

/// A table with string keys, read as a copy; a table with other keys is of another type.
extension Dictionary: FlowValueConvertible
where Key: FlowKeyConvertible, Value: FlowValueConvertible {
  public static var flowTypeName: String { "table" }

  public init?(flowValue: FlowEngine.FlowValue) {
    guard case .opaque(let opaque) = flowValue, let map = MapValue(copying: opaque) else {
      return nil
    }
    self = [:]
    for (name, value) in map.fields {
      guard let key = Key(flowKey: name), let value = Value(flowValue: value) else { return nil }
      self[key] = value
    }
  }

  public var flowValue: FlowEngine.FlowValue {
    .opaque(MapValue(map { ($0.flowKey, $1.flowValue) }))
  }
}

/// A Swift type that can name a field of a table.
public protocol FlowKeyConvertible: Hashable {
  /// nil when the bytes name nothing.
  init?(flowKey: ByteString)
  /// The key of this value.
  var flowKey: ByteString { get }
}

extension String: FlowKeyConvertible {
  public init?(flowKey: ByteString) { self.init(flowValue: .bytes(flowKey)) }
  public var flowKey: ByteString { ByteString(self) }
}

extension ByteString: FlowKeyConvertible {
  public init?(flowKey: ByteString) { self = flowKey }
  /// The bytes as they are.
  public var flowKey: ByteString { self }
}

/// An enum with raw values only has to declare it: `enum Plan: String, FlowValueConvertible`.
extension FlowValueConvertible where Self: RawRepresentable, RawValue: FlowValueConvertible {
  public static var flowTypeName: String { RawValue.flowTypeName }
  public static var flowWantedName: String { String(describing: Self.self) }

  public init?(flowValue: FlowValue) {
    guard let rawValue = RawValue(flowValue: flowValue) else { return nil }
    self.init(rawValue: rawValue)
  }

  public var flowValue: FlowValue { rawValue.flowValue }
}

/// A copy of any value that can be copied; tables keep their cycles and shared parts.
extension PlainValue: FlowValueConvertible {
  public static var flowTypeName: String { "any" }
  public static var flowWantedName: String { "a value that can be copied" }

  public init?(flowValue: FlowValue) {
    guard let copy = flowValue.plainCopy() else { return nil }
    self = copy
  }

  /// The copy as a value of the engine. Keys that are neither strings nor integers become their texts.
  public var flowValue: FlowValue {
    let made: [any OpaqueValue] = tables.map { table in
      let isEmptyObject = table.list.isEmpty && table.mark == .object
      if table.entries.isEmpty && !isEmptyObject { return ListValue([], jsonMark: table.mark) }
      return MapValue([], jsonMark: table.mark)
    }
    func value(_ atom: Atom) -> FlowValue {
      switch atom {
      case .null: .null
      case .jsonNull: .jsonNull
      case .boolean(let value): .boolean(value)
      case .integer(let value): .integer(value)
      case .number(let value): .number(value)
      case .bytes(let value): .bytes(value)
      case .table(let index): made.indices.contains(index) ? .opaque(made[index]) : .null
      case .secret(let atom): .secret(value(atom))
      }
    }
    for (table, object) in zip(tables, made) {
      if let list = object as? ListValue {
        for atom in table.list { list.append(value(atom)) }
      } else if let map = object as? MapValue {
        for (index, atom) in table.list.enumerated() { map.set(Int64(index + 1), value(atom)) }
        for entry in table.entries {
          if case .integer(let number) = entry.key {
            map.set(number, value(entry.value))
          } else {
            map.set(value(entry.key).logTextBytes, value(entry.value))
          }
        }
      }
    }
    return value(root)
  }
}
