public import FlowEngine
public import LuaVM

/// Objects of a bound class as values of data: a class that conforms to both protocols needs nothing else.
///
/// ```swift
/// final class Order: LuaObject, FlowValueConvertible { var total = 0 }
/// let run = op.start(on: host.loop, data: ["order": Order()])
/// ```
extension LuaObject where Self: FlowValueConvertible {
  /// The name of the Swift type.
  public static var flowTypeName: String { String(describing: Self.self) }

  /// The object that is stored in a value; nil if it is none of this type.
  public init?(flowValue: FlowValue) {
    guard let object = flowValue.object(as: Self.self) else { return nil }
    self = object
  }

  /// The object as a value, by reference.
  public var flowValue: FlowValue { .object(self) }
}
