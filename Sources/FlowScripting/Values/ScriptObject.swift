internal import FlowEngine
internal import LuaVM

/// An object of a bound class that a script has stored, as an engine value: scripts of its state get the
/// same userdata again, Swift gets the object.
///
/// It holds the Swift object itself, so Swift can read it after the state was closed.
final class ScriptObject: OpaqueValue {
  let reference: LuaReference
  private let bound: LuaBoundObject

  init(_ reference: LuaReference, _ bound: LuaBoundObject) {
    self.reference = reference
    self.bound = bound
  }

  /// The name of the class in scripts.
  var typeName: ByteString { ByteString(bound.className) }

  func logText(limit: Int) -> ByteString {
    if let text = try? reference.vm.render(.reference(reference), limit: limit) { return text }
    return ByteString(describing: bound.object).truncated(to: limit)
  }

  func matches(typeName wanted: ByteString) -> Bool {
    wanted == typeName || wanted == "userdata" || ObjectValue.isNamed(wanted, bound.object)
  }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }

  func swiftObject() -> Any? { bound.object }

  /// Whether both hold the same instance of a class, or are the same userdata of a structure.
  func isSame(as other: any OpaqueValue) -> Bool {
    if self === other || ObjectValue.isSame(bound.object, other.swiftObject()) { return true }
    guard let other = other as? ScriptObject else { return false }
    return bound.content === other.bound.content
  }
}
