/// The annotations of the module `flow` for LuaLS: the only source for editors, `help` and completion.
public enum Annotations {
  /// The files that editors need, by name.
  public static var files: [(name: String, text: String)] {
    [("flow.d.lua", text), ("flow.testing.d.lua", testing)]
  }

  /// The text of `flow.d.lua`.
  public static let text = String(decoding: PackageResources.flow_d_lua, as: UTF8.self)

  /// The text of `flow.testing.d.lua`.
  public static let testing = String(decoding: PackageResources.flow_testing_d_lua, as: UTF8.self)
}
