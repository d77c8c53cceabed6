public import FlowEngine
public import LuaVM

/// Errors as scripts see them: tables with `kind`, `message`, `op`, `traceback`, `cause` and a
/// `__tostring`. An error keeps its one table wherever it goes.
extension LuaVM {
  func makeErrorMetatable() throws -> LuaReference {
    let metatable = try makeTable(fields: [("__name", "flow.error")])
    let tostring = try makeFunction { [unowned self] call in
      guard call.kind(1) == .table, case .reference(let table) = try call.value(1) else {
        return call.answer(.string("flow.error"))
      }
      guard case .string(let text) = try self.field("message", of: table) else {
        return call.answer(.string("flow.error"))
      }
      return call.answer(.string(text))
    }
    try set(.reference(tostring), "__tostring", in: metatable)
    return metatable
  }

  /// A field of a table without metamethods.
  func field(_ name: LuaString, of table: LuaReference) throws -> LuaValue {
    try rawGet(.string(name), in: table)
  }
}

extension ScriptHost {
  /// A new error table.
  func makeError(
    _ kind: FlowError.Kind, _ message: ByteString, op: ByteString? = nil,
    traceback: ByteString? = nil, cause: LuaValue = .nil,
    fields: [(LuaString, LuaValue)] = []
  ) throws -> LuaReference {
    var all = fields
    all.append(("kind", .string(LuaString(kind.name))))
    all.append(("message", .string(LuaString(message))))
    if let op { all.append(("op", .string(LuaString(op)))) }
    if let traceback { all.append(("traceback", .string(LuaString(traceback)))) }
    if !cause.isNil { all.append(("cause", cause)) }
    return try vm.makeTable(fields: all, metatable: errorMetatable)
  }

  /// A new table for an engine error: with its number, and with how the program ended whose status is
  /// the failure.
  func makeError(_ error: FlowError) throws -> LuaReference {
    var fields = error.process.map { self.fields(of: $0) } ?? []
    if let code = error.code { fields.append(("code", .integer(code))) }
    return try makeError(
      error.kind, error.message, op: error.op, traceback: error.traceback, fields: fields)
  }

  /// Whether a value is an error table of ours.
  public func isError(_ value: LuaValue) -> Bool {
    guard case .reference(let reference) = value, reference.kind == .table else { return false }
    return vm.has(metatable: errorMetatable, reference)
  }

  /// An engine error as its table.
  func luaError(_ error: FlowError) throws -> LuaValue {
    guard let table = table(of: error) else { return .reference(try makeError(error)) }
    if let op = error.op, try vm.field("op", of: table).isNil {
      try vm.set(.string(LuaString(op)), "op", in: table)
    }
    return .reference(table)
  }

  /// The table that an error has in this state; nil for one that has none, or comes from another state.
  func table(of error: FlowError) -> LuaReference? {
    guard case .opaque(let opaque)? = error.payload?.get(), let value = opaque as? ScriptValue,
      value.reference.vm === vm
    else { return nil }
    return value.reference
  }

  /// The engine error that belongs to an error table.
  func flowError(table: LuaReference) throws -> FlowError {
    func text(_ name: LuaString) throws -> ByteString? {
      guard case .string(let string) = try vm.field(name, of: table) else { return nil }
      return ByteString(string)
    }
    let name = try text("kind")
    let kind = FlowError.Kind.allCases.first { $0.name == name } ?? .error
    var code: Int64?
    if case .integer(let number) = try vm.field("code", of: table) { code = number }
    return FlowError(
      kind, try text("message") ?? "", op: try text("op"), traceback: try text("traceback"),
      code: code, payload: ConfinedValue(.opaque(ScriptValue(table)), on: loop))
  }

  /// The same error with a table of its own, so that what a script catches is what the run shows.
  func withTable(_ error: FlowError, op: ByteString?) -> FlowError {
    guard
      let table = try? makeError(
        error.kind, error.message, op: op, traceback: ByteString(vm.traceback(level: 1)))
    else { return error }
    return FlowError(
      error.kind, error.message, op: op, traceback: error.traceback,
      payload: ConfinedValue(.opaque(ScriptValue(table)), on: loop), seconds: error.seconds)
  }

  /// What a failed coroutine raised, as an engine error: error tables as they are, anything else as
  /// the cause of a new one, with identity kept.
  func flowError(
    of failure: (error: any Error, position: LuaString, traceback: LuaString), op: ByteString?
  ) -> FlowError {
    let traceback = ByteString(failure.traceback)
    guard let raised = failure.error as? LuaError, let value = raised.value else {
      return (failure.error as? FlowError)
        ?? FlowError(.error, ByteString(describing: failure.error), op: op, traceback: traceback)
    }
    do {
      return try flowError(
        raised: value, at: failure.position, op: op, traceback: traceback)
    } catch {
      return FlowError(.error, ByteString(raised.message), op: op, traceback: traceback)
    }
  }

  /// A value that was raised, or given as an error, as an engine error: an error table as it is,
  /// anything else as the cause of a new one.
  func flowError(
    raised value: LuaValue, at position: LuaString, op: ByteString? = nil,
    traceback: ByteString? = nil
  ) throws -> FlowError {
    if isError(value), case .reference(let table) = value {
      // One of a program, or of the engine, comes with none.
      if let traceback, try vm.field("traceback", of: table).isNil {
        try vm.set(.string(LuaString(traceback)), "traceback", in: table)
      }
      return try flowError(table: table)
    }
    let message = describe(value, position: ByteString(position))
    let table = try makeError(.error, message, op: op, traceback: traceback, cause: value)
    return FlowError(
      .error, message, op: op, traceback: traceback,
      payload: ConfinedValue(.opaque(ScriptValue(table)), on: loop))
  }

  /// One line about a raised value. A string stands for itself; other values get the place where
  /// they were raised, as nothing in them tells.
  private func describe(_ value: LuaValue, position: ByteString) -> ByteString {
    switch value {
    case .string(let text): return ByteString(text)
    case .integer, .number:
      return position + ByteString((try? vm.tostring(value)) ?? "a number")
    case .nil, .boolean:
      return "\(position)(error object is a \(ByteString(vm.typeName(of: value))) value)"
    case .reference(let reference):
      if vm.hasMetafield("__tostring", reference) {
        do { return ByteString(try vm.tostring(value)) } catch {
          let problem = (error as? LuaError)?.message ?? LuaString("\(error)")
          return """
            \(position)(error object is a \(reference.kind.name) value; \
            its __tostring failed: \(ByteString(problem)))
            """
        }
      }
      let shown =
        (try? loop.secrets.shownText(limit: Value.logLimit) {
          ByteString(try vm.render(value, limit: $0))
        }) ?? ""
      let what = "error object is a \(reference.kind.name) value"
      return reference.kind == .table
        ? "\(position)(\(what): \(shown))" : "\(position)(\(what))"
    }
  }

  // MARK: Wrong use

  /// An error of kind `usage` to raise from a function of the API: the message begins with the
  /// script's `file:line:`.
  func usage(_ call: LuaCall, _ message: String) -> any Error {
    usage(at: call.position, message)
  }

  func usage(at position: LuaString, _ message: String) -> any Error {
    // A message quotes names and values of the script, which may be of any length.
    let text = loop.secrets.redacted(
      ByteString(position) + loop.secrets.redacted(ByteString(message)).truncated(to: 501))
    do {
      let table = try makeError(
        .usage, text, traceback: ByteString(vm.traceback(level: 1)))
      return LuaError(.argument, value: .reference(table), message: LuaString(text))
    } catch {
      return error
    }
  }

  /// An engine error to raise in the script.
  func raise(_ error: FlowError) -> any Error {
    do {
      return LuaError(value: try luaError(error), message: LuaString(error.message))
    } catch {
      return error
    }
  }

  /// What to print of an error that ended a script or that nobody observed: the message and, where
  /// the message hasn't one already, the traceback.
  ///
  /// Secrets are replaced.
  public func report(of error: any Error) -> ByteString {
    loop.secrets.redacted(text(of: error))
  }

  private func text(of error: any Error) -> ByteString {
    if let error = error as? LuaError {
      guard let value = error.value, isError(value), case .reference(let table) = value,
        let own = try? flowError(table: table)
      else { return ByteString(error.message) }
      return text(of: own)
    }
    guard let error = error as? FlowError else { return ByteString(describing: error) }
    guard let traceback = error.traceback else { return error.message }
    return error.message + "\n" + traceback
  }
}

extension FlowError {
  /// The same error with the table that it has in scripts.
  func with(payload table: LuaReference, on loop: EventLoop) -> FlowError {
    FlowError(
      kind, message, op: op, traceback: traceback, code: code,
      payload: ConfinedValue(.opaque(ScriptValue(table)), on: loop), seconds: seconds,
      process: process)
  }
}
