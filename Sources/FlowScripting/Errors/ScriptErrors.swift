@_spi(Scripting) public import FlowEngine
@_spi(Scripting) package import LuaVM

/// Errors as scripts see them: tables with `kind`, `message`, `op`, `path`, `traceback`, `cause`
/// and a `__tostring`. An error always has the same table.
extension LuaVM {
  func makeErrorMetatable() throws -> LuaReference {
    let metatable = try makeTable(fields: [("__name", "flow.error")])
    let tostring = try makeFunction { [unowned self] call in
      call.answer(.string(try self.errorText(try call.value(1)) ?? "flow.error"))
    }
    let concat = try makeFunction { [unowned self] call in
      // The operand that is no error.
      let operands = try [1, 2].map { index in
        let value = try call.value(index)
        if call.typeName(index) == "flow.error", let text = try self.errorText(value) {
          return text
        }
        switch value {
        case .string, .integer, .number: return try self.tostring(value)
        case .reference(let reference) where self.hasMetafield("__tostring", reference):
          return try self.tostring(value)
        default:
          throw LuaError(
            .runtime,
            ByteString("\(self.position)attempt to concatenate a \(call.typeName(index)) value"))
        }
      }
      return call.answer(.string(ByteString(operands[0].bytes + operands[1].bytes)))
    }
    try set(.reference(tostring), "__tostring", in: metatable)
    try set(.reference(concat), "__concat", in: metatable)
    return metatable
  }

  /// The `tostring` of an error table: its message with its place and suggestion; nil for a table
  /// without a message.
  private func errorText(_ value: LuaValue) throws -> ByteString? {
    guard case .reference(let table) = value, table.kind == .table else { return nil }
    let texts = try texts("message\0path\0suggestion\0place\0kind", of: table)
    guard let message = texts[0] else { return nil }
    return FlowError.text(
      message, isMissingOutput: texts[4] == "missing_output", path: texts[1], suggestion: texts[2],
      place: texts[3])
  }

  /// A field of a table without metamethods.
  func field(_ name: ByteString, of table: LuaReference) throws -> LuaValue {
    try rawGet(.string(name), in: table)
  }

  /// The strings in some fields of a table, whose names are separated by NUL, without metamethods; nil for a field
  /// that has none.
  fileprivate func texts(_ names: StaticString, of table: LuaReference) throws -> [ByteString?] {
    try fields(names, of: table).map { value in
      guard case .string(let string) = value else { return nil }
      return string
    }
  }
}

extension ScriptHost {
  /// The fields of an error that the host sets.
  static let errorFields: Set<ByteString> = [
    "kind", "message", "op", "path", "suggestion", "place", "traceback", "cause",
  ]

  /// A new error table for an engine error, with its number, and, for a program whose status is the
  /// failure, with the program's result; for a request, with its details.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - cause: The value raised by the script, if it isn't the error itself.
  ///   - fields: Further fields, which take precedence over the error's own.
  /// - Returns: The table.
  /// - Throws: A `LuaError` without memory for it.
  func makeError(
    _ error: FlowError, cause: LuaValue = .nil, fields: [(ByteString, LuaValue)] = []
  ) throws -> LuaReference {
    var all = fields
    // The name is made only for a field that there is.
    func add(_ name: @autoclosure () -> ByteString, _ value: LuaValue?) {
      if let value, !value.isNil { all.append((name(), value)) }
    }
    func add(_ name: @autoclosure () -> ByteString, _ text: ByteString?) {
      add(name(), text.map { .string($0) })
    }
    if fields.isEmpty {
      if let process = error.process { all += process.luaFields }
      if let request = error.request { all += try request.luaFields(vm) }
      add("code", error.code.map { .integer($0) })
      add("retry", error.isRetriable.map { .boolean($0) })
      add("retry_after", error.retryAfter.map { .number($0.inSeconds) })
    }
    add("kind", error.kind.name)
    add("message", error.message)
    add("op", error.op)
    add("path", error.path)
    add("suggestion", error.suggestion)
    add("place", error.stopPlace)
    add("traceback", error.traceback)
    add("cause", cause)
    if !error.others.isEmpty { add("others", .reference(try list(of: error.others))) }
    let table = try vm.makeTable(fields: all, metatable: types.errorMetatable)
    if error.underlying != nil || error.process != nil || error.limit != nil
      || error.request != nil || error.isTransient != nil || !error.others.isEmpty
    {
      try service { KeptErrors() }.keep(error.with { $0.payload = nil }, of: table, self)
    }
    return table
  }

  private func list(of errors: [FlowError]) throws -> LuaReference {
    try vm.makeTable(values: try errors.map { try luaError($0) })
  }

  /// Whether a value is an error table of this host.
  package func isError(_ value: LuaValue) -> Bool {
    guard case .reference(let reference) = value, reference.kind == .table else { return false }
    return vm.has(metatable: types.errorMetatable, reference)
  }

  /// An engine error as its table.
  func luaError(_ error: FlowError) throws -> LuaValue {
    guard let table = table(of: error) else { return .reference(try makeError(error)) }
    for (name, text) in [
      ("op", error.op), ("path", error.path), ("place", error.stopPlace),
    ] {
      if let text, try vm.field(name, of: table).isNil {
        try vm.set(.string(text), name, in: table)
      }
    }
    // A graph has found them after the op has failed.
    if !error.others.isEmpty {
      let kept = service { KeptErrors() }
      if kept.error(of: table, self)?.others.count != error.others.count {
        try vm.set(.reference(try list(of: error.others)), "others", in: table)
        try kept.keep(error.with { $0.payload = nil }, of: table, self)
      }
    }
    return .reference(table)
  }

  /// The error's table in this state; nil if it has none, or comes from another state.
  func table(of error: FlowError) -> LuaReference? {
    guard case .opaque(let opaque)? = error.payload?.get(), let value = opaque as? ScriptValue,
      value.reference.vm === vm
    else { return nil }
    return value.reference
  }

  /// The engine error that belongs to an error table.
  func flowError(table: LuaReference) throws -> FlowError {
    let texts = try vm.texts(
      "kind\0message\0op\0path\0suggestion\0place\0traceback", of: table)
    let kind = texts[0].flatMap { FlowError.Kind(named: $0) } ?? .error
    let kept = existing(KeptErrors.self)?.error(of: table, self)
    let base = kept?.kind == kind ? kept : nil
    let message = texts[1] ?? ""
    let details = FailureFields(table, self)
    return (base ?? FlowError(kind, message)).with {
      $0.message = message
      $0.op = texts[2]
      $0.path = texts[3]
      $0.suggestion = texts[4]
      $0.place = texts[5]
      $0.traceback = texts[6]
      details.apply(to: &$0)
      $0.payload = ConfinedValue(.opaque(ScriptValue(table)), on: loop)
    }
  }

  /// The error with a new table, as one of an op, so that a script catches the error that the
  /// run shows.
  func withTable(_ error: FlowError, of context: OpContext?) -> FlowError {
    let traced = error.with {
      $0.traceback = vm.traceback(level: 1)
      if let context {
        $0.op = context.displayName
        $0.path = context.path
      }
    }
    guard let table = try? makeError(traced) else { return error }
    return traced.with(payload: table, on: loop)
  }

  /// The error of a failed coroutine as an engine error: an error table unchanged, any other value
  /// as the cause of a new one, with its identity.
  func flowError(
    of failure: (error: any Error, position: ByteString, traceback: ByteString), op: ByteString?
  ) -> FlowError {
    let traceback = failure.traceback
    guard let raised = failure.error as? LuaError, let value = ownValue(of: raised) else {
      let error = FlowError.from(failure.error)
      // One that Swift code threw doesn't say where.
      if !(failure.error is LuaError), error.traceback == nil, error.stopPlace == nil {
        return error.placed(by: traceback).with { $0.op = $0.op ?? op }
      }
      return error === failure.error as? FlowError
        ? error
        : error.with {
          $0.op = op
          $0.traceback = traceback
        }
    }
    do {
      return try flowError(
        raised: value, at: failure.position, op: op, traceback: traceback)
    } catch {
      return FlowError(raised.flowKind, raised.message, op: op, traceback: traceback)
    }
  }

  /// The value that was raised; nil also for one of another state, of which only the message is known here.
  private func ownValue(of error: LuaError) -> LuaValue? {
    if case .reference(let reference)? = error.value, reference.vm !== vm { return nil }
    return error.value
  }

  /// A raised or passed error value as an engine error: an error table unchanged, any other value
  /// as the cause of a new one.
  func flowError(
    raised value: LuaValue, at position: ByteString, op: ByteString? = nil,
    traceback: ByteString? = nil
  ) throws -> FlowError {
    if isError(value), case .reference(let table) = value {
      // An error of a program, or of the engine, has none.
      if let traceback, try vm.field("traceback", of: table).isNil {
        try vm.set(.string(traceback), "traceback", in: table)
      }
      return try flowError(table: table)
    }
    // Also one that was caught and raised again.
    let isMemory = value == .string(LuaVM.memoryError)
    var error = FlowError(
      isMemory ? .memory : .error, describe(value, position: position), op: op,
      traceback: traceback
    ).with { if case .string = value { $0.isMessageOfLua = true } }
    var fields: [(ByteString, LuaValue)] = []
    if case .reference(let table) = value, table.kind == .table {
      // A table of the script's own has its own text.
      let details = FailureFields(table, self)
      error = error.with { details.apply(to: &$0) }
      fields = details.fields
    }
    return error.with(payload: try makeError(error, cause: value, fields: fields), on: loop)
  }

  /// One line about a raised value. A string is shown as it is; other values are followed by the
  /// place where they were raised, since they don't contain one.
  private func describe(_ value: LuaValue, position: ByteString) -> ByteString {
    switch value {
    case .string(let text): return text
    case .integer, .number:
      return position + ((try? vm.tostring(value)) ?? "a number")
    case .nil, .boolean:
      return "\(position)(error object is a \(vm.typeName(of: value)) value)"
    case .reference(let reference):
      if vm.hasMetafield("__tostring", reference) {
        do { return try vm.ownText(of: value) } catch {
          let problem = (error as? LuaError)?.message ?? ByteString(describing: error)
          return """
            \(position)(error object is a \(reference.kind.name) value; \
            its __tostring failed: \(problem))
            """
        }
      }
      if reference.kind == .table,
        let message = try? vm.texts("message", of: reference).first ?? nil
      {
        return message
      }
      let shown =
        (try? loop.secrets.shownText(limit: FlowValue.logLimit) {
          try vm.render(value, limit: $0)
        }) ?? ""
      let what = "error object is a \(reference.kind.name) value"
      return reference.kind == .table
        ? "\(position)(\(what): \(shown))" : "\(position)(\(what))"
    }
  }

  /// An error that came out of Lua, such as from `LuaVM.call`, as one of the engine.
  ///
  /// The error of a run that a script has raised is that error; if Swift code threw it, in an op or a function that
  /// the script called, that is its `underlying`. Any other value is the payload of a new error. On the thread of
  /// the host.
  public func flowError(from error: any Error) -> FlowError {
    guard let error = error as? LuaError, let value = ownValue(of: error) else {
      return .from(error)
    }
    return ((try? flowError(raised: value, at: "")) ?? .from(error)).with {
      $0.column = error.column
    }
  }

  // MARK: Misuse

  /// nil for a name that an object has no field of, or one without a value; an error where it is a misspelt one.
  func absentField(_ call: LuaCall, of kind: String, known: [String]) throws -> LuaAnswer {
    if let name = call.bytes(2)?.description, !known.contains(name),
      let near = NearestName.of(name, in: known)
    {
      throw usage(call, "\(kind) has no field '\(name)' (did you mean '\(near)'?)")
    }
    return call.answer(.nil)
  }

  /// An error of kind `usage` to raise from a function of the API: the message begins with the
  /// script's `file:line:`.
  package func usage(_ call: LuaCall, _ message: ByteString) -> any Error {
    usage(at: call.position, message)
  }

  package func usage(at position: ByteString, _ message: ByteString) -> any Error {
    // A message quotes names and values of the script, which may have any length.
    let text = loop.secrets.redacted(
      position + loop.secrets.redacted(message).truncated(to: 501))
    do {
      let table = try makeError(
        FlowError(.usage, text, traceback: vm.traceback(level: 1)))
      return LuaError(.argument, value: .reference(table), message: text)
    } catch {
      return error
    }
  }

  /// An engine error to raise in the script.
  func raise(_ error: FlowError) -> any Error {
    do {
      return LuaError(value: try luaError(error), message: error.message)
    } catch {
      return error
    }
  }

  /// The error of a failed system call to raise in the script: its message begins with `position`,
  /// `code` is the `errno`, and `name` is its name, such as `ENOENT`.
  func raise(_ error: SystemError, at position: ByteString) -> any Error {
    let converted = FlowError.from(error).with { $0.message = position + $0.message }
    guard let code = error.code, let name = error.name, !error.isCancellation else {
      return raise(converted)
    }
    do {
      let fields: [(ByteString, LuaValue)] = [
        ("code", .integer(Int64(code))), ("name", .string(name)),
      ]
      return LuaError(
        value: .reference(try makeError(converted, fields: fields)), message: converted.message
      )
    } catch {
      return error
    }
  }

  /// An error of kind `error` about a text, with numbers that say where in it.
  func textError(
    _ call: LuaCall, _ path: ByteString?, _ message: String, code: ByteString,
    _ numbers: [(ByteString, Int)]
  ) -> any Error {
    let place = path.map { "'\($0)': " } ?? ""
    let text = loop.secrets.redacted("\(call.position)\(place)\(message)")
    let fields = numbers.map { ($0.0, LuaValue.integer(Int64($0.1))) }
    do {
      let table = try makeError(
        FlowError(.error, text, traceback: vm.traceback(level: 1)),
        fields: [("code", .string(code))] + fields)
      return LuaError(value: .reference(table), message: text)
    } catch {
      return error
    }
  }

  /// The text for an error that ended a script or that was unobserved: the message, the last five lines of its program's
  /// stderr if it has several, and, unless the message already contains one, the traceback.
  ///
  /// Secrets are replaced.
  ///
  /// ```swift
  /// do { _ = try await host.call(function) } catch { print(host.report(of: error)) }
  /// ```
  public func report(of error: any Error) -> ByteString {
    loop.secrets.redacted(text(of: error))
  }

  private func text(of error: any Error) -> ByteString {
    if let error = error as? LuaError {
      guard let value = error.value, isError(value), case .reference(let table) = value,
        let own = try? flowError(table: table)
      else { return error.message }
      return text(of: own)
    }
    guard let error = error as? FlowError else { return ByteString(describing: error) }
    let text = error.text + error.programLines(hiding: loop.secrets) + error.otherLines
    // Without memory there was none to be made.
    guard let traceback = error.traceback, !traceback.isEmpty else { return text }
    return text + "\n" + traceback
  }
}

extension LuaError: ErrorWithKind {
  package var isMessageOfLua: Bool { code == .syntax || code == .runtime }

  package var flowKind: FlowError.Kind {
    switch code {
    case .memory: .memory
    case .instructions: .instructions
    default: .error
    }
  }
}

extension FlowError {
  /// The error with its table for scripts.
  func with(payload table: LuaReference, on loop: FlowEventLoop) -> FlowError {
    with { $0.payload = ConfinedValue(.opaque(ScriptValue(table)), on: loop) }
  }

  /// The timeout with the place of the stopped code, from the stack at that time.
  func located(by traceback: ByteString) -> FlowError {
    guard limit != nil, stopPlace == nil else { return self }
    return placed(by: traceback)
  }

  /// This error with the place of the innermost code of a script on a stack.
  func placed(by traceback: ByteString) -> FlowError {
    guard let place = Self.place(in: traceback) else { return self }
    return with {
      $0.place = place
      $0.traceback = traceback
      // An existing table for it doesn't have the place.
      $0.payload = nil
    }
  }

  /// `upload.lua:12, in flow.sleep`: the innermost Lua function on a stack, and the function it
  /// calls.
  private static func place(in traceback: ByteString) -> ByteString? {
    let tab = UInt8(ascii: "\t")
    let native: ByteString = "[C]: in "
    var callee: ByteString?
    for line in traceback.bytes.split(separator: UInt8(ascii: "\n")) where line.first == tab {
      let line = line.dropFirst()
      if line.starts(with: native.bytes) {
        // If there are several names, the one that Lua calls.
        let quote = UInt8(ascii: "'")
        let parts = line.split(separator: quote, omittingEmptySubsequences: false)
        callee = parts.count == 3 ? ByteString(parts[1]) : nil
      } else if line.first != UInt8(ascii: ":"), let end = line.place(of: ": in ")?.lowerBound {
        // Code of this library has no name.
        let place = ByteString(line[..<end])
        return callee.map { "\(place), in \($0)" } ?? place
      }
    }
    return nil
  }
}
