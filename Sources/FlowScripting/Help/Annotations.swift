/// The annotations of the module `flow` for LuaLS: the only source for editors, `help` and completion.
package enum Annotations {
  /// The files that editors need, by name: one for the module, one for each submodule.
  package static let files: [(name: String, text: String)] = [
    ("flow.d.lua", String(decoding: PackageResources.flow_d_lua, as: UTF8.self)),
    ("flow.csv.d.lua", String(decoding: PackageResources.flow_csv_d_lua, as: UTF8.self)),
    ("flow.http.d.lua", String(decoding: PackageResources.flow_http_d_lua, as: UTF8.self)),
    ("flow.json.d.lua", String(decoding: PackageResources.flow_json_d_lua, as: UTF8.self)),
    ("flow.fs.d.lua", String(decoding: PackageResources.flow_fs_d_lua, as: UTF8.self)),
    ("flow.testing.d.lua", String(decoding: PackageResources.flow_testing_d_lua, as: UTF8.self)),
  ]
}
