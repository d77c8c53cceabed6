/// A Swift class whose objects scripts can hold. Made by `LuaVM.defineType`.
public struct LuaObjectType<Object: AnyObject> {
  /// The name that messages show.
  public let name: String

  let id: Int32
}

/// A kind of handle: a userdata that carries a slot and a generation instead of a reference, so that
/// it keeps nothing alive, and there is nothing to give back at its end.
public struct LuaHandleType {
  /// The name that messages show.
  public let name: String

  let id: Int32
}
