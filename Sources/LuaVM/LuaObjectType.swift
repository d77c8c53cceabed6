/// A Swift class whose objects scripts can hold. Made by `LuaVM.defineType`.
@_spi(Scripting) public struct LuaObjectType<Object: AnyObject> {
  /// The name in messages.
  public let name: String

  let id: Int32
}

/// A kind of handle: a userdata with a slot and a generation instead of a reference. It keeps
/// nothing alive, so nothing has to be released with it.
package struct LuaHandleType {
  /// The name in messages.
  package let name: String

  let id: Int32
}
