internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension ScriptHost {
  /// The events of a run for `run:events()`: a list of tables with the fields of `RunEvent.Field`. They are filled one
  /// after another, so that a list of a million needs no second copy of them.
  func events(of run: Run) throws -> LuaReference {
    let list = try vm.makeTable()
    var fields: [(ByteString, LuaValue)] = []
    var index = 0
    for event in run.events {
      index += 1
      fields.removeAll(keepingCapacity: true)
      event.forEachField { field, value in
        switch value {
        case .bytes(let text): fields.append((field.name, .string(text)))
        case .integer(let number): fields.append((field.name, .integer(number)))
        case .number(let number): fields.append((field.name, .number(number)))
        default: break
        }
      }
      try vm.set(.reference(try vm.makeTable(fields: fields)), at: index, in: list)
    }
    return list
  }
}
