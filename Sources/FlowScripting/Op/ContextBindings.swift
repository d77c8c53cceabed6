@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `ctx`: the context of an op written in Lua.
struct ContextBindings {
  let host: ScriptHost

  static var methods: LuaFields<BoundMethod> {
    [
      "get": BoundMethod(
        takesKey: true,
        direct: { host, call in
          guard !call.hasArgument, let context = Self(host: host).unmanagedContext(call) else {
            return call.pass()
          }
          let key = DataKey(id: UInt32(truncatingIfNeeded: call.key))
          return call.answer(copyOf: context._withUnsafeGuaranteedRef { $0.read(key) })
        }
      ) { host, call in
        let context = try Self(host: host).context(call, "get")
        let key = try Self(host: host).key(call, "get")
        if context.isGuarded, let error = context.refusal(reading: key) {
          throw host.usage(call, "bad use of 'get' (\(error.message))")
        }
        let found = context.get(key)
        if host.isWorker, found == nil {
          if let items = try StreamBindings.distantItems(key, context, host, call) { return items }
          try host.checkVisible(key, context, call)
        }
        if call.count < 3 || call.isNil(3) {
          guard let found else {
            throw Self(host: host).end(context, context.bucket.missingInput(key))
          }
          return try Self(host: host).answer(call, found, key, context)
        }
        let type = try Self(host: host).typeArgument(call)
        guard let found else {
          if type.isOptional { return call.answer(.nil) }
          throw Self(host: host).end(context, context.bucket.missingInput(key))
        }
        if let wanted = type.mismatch(found) {
          throw Self(host: host).end(
            context,
            .mismatchedInput(
              host.loop.keys.name(of: key), context.bucket.shown(found, of: key), wanted: wanted,
              hiding: host.loop.secrets))
        }
        return try Self(host: host).answer(call, found, key, context)
      },
      "emit": BoundMethod(
        takesKey: true,
        direct: { host, call in
          guard call.hasValue, !(call.isString && host.vm.hasMemoryLimit),
            let context = Self(host: host).unmanagedContext(call)
          else { return call.pass() }
          let key = DataKey(id: UInt32(truncatingIfNeeded: call.key))
          return context._withUnsafeGuaranteedRef { StreamBindings.emit(key, $0, call) }
        }
      ) { host, call in
        let context = try Self(host: host).context(call, "emit")
        let key = try Self(host: host).key(call, "emit")
        return try StreamBindings.emit(
          key, context, Arguments(host, call, method: "emit"), host)
      },
      "set": BoundMethod(
        takesKey: true,
        direct: { host, call in
          guard call.hasValue, let context = Self(host: host).unmanagedContext(call) else {
            return call.pass()
          }
          // Beyond a memory limit it isn't kept.
          if call.isString, host.vm.hasMemoryLimit { return call.pass() }
          let key = DataKey(id: UInt32(truncatingIfNeeded: call.key))
          let value = FlowValue(call.value)
          let isSet = context._withUnsafeGuaranteedRef { $0.setUnguarded(key, value) }
          return isSet ? call.answer() : call.pass()
        }
      ) { host, call in
        let context = try Self(host: host).context(call, "set")
        let key = try Self(host: host).key(call, "set")
        if call.count < 3 {
          throw Arguments(host, call, method: "set").wrong(2, expected: "value")
        }
        let value = try call.engineValue(3)
        if case .bytes = value { try host.checkMemory() }
        // Of the values that an item sets, only its output travels; it is checked when the item
        // ends.
        if host.isWorker, call.kind(3) != .table || !context.isGroupMember {
          try host.checkEncodable(value, key, call)
        }
        if context.isGuarded, let error = context.refusal(setting: key) {
          throw host.usage(call, "bad use of 'set' (\(error.message))")
        }
        context.set(key, value)
        return call.answer()
      },
      "has": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "has")
        let key = try Self(host: host).key(call, "has")
        let isThere = context.has(key)
        if host.isWorker, !isThere { try host.checkVisible(key, context, call) }
        return call.answer(.boolean(isThere))
      },
      "log": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "log")
        try host.checkMemory()
        if call.count == 2, let text = call.bytes(2) {
          context.log(text)
          return call.answer()
        }
        var line: [UInt8] = []
        if call.count >= 2 {
          for index in 2...call.count {
            if index > 2 { line.append(UInt8(ascii: " ")) }
            let text = try call.bytes(index) ?? host.vm.tostring(try call.value(index))
            line.append(contentsOf: text.bytes)
          }
        }
        // A `__tostring` may have ended the op.
        try Self(host: host).context(call, "log").log(ByteString(line))
        return call.answer()
      },
      "execute": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "execute")
        let arguments = Arguments(host, call, method: "execute")
        guard let op = host.op(call, 2) else { throw arguments.wrong(1, expected: "op") }
        if let complaint = op.complaintOfClass { throw host.usage(call, complaint) }
        return try WrapBindings(host: host).execute(
          op, in: context, try arguments.data(2), call, "execute")
      },
      "depends_on": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "depends_on")
        let arguments = Arguments(host, call, method: "depends_on")
        if host.isWorker {
          throw host.usage(
            call, "bad use of 'depends_on' (a worker can't report files: give them as an output)")
        }
        var paths: [ByteString] = []
        if call.kind(2) == .table {
          guard let list = try host.strings(in: .reference(try arguments.table(1))) else {
            throw arguments.wrong(1, expected: "path or list of paths")
          }
          paths = list
        } else {
          guard let path = call.bytes(2), call.kind(2) == .string else {
            throw arguments.wrong(1, expected: "path or list of paths")
          }
          paths = [path]
        }
        for path in paths where path.isEmpty || path.bytes.contains(0) {
          throw arguments.wrong(1, "a path isn't empty, and has no NUL byte")
        }
        for path in paths { context.dependsOn(path) }
        return call.answer()
      },
      "wait_for": BoundMethod { host, call in
        try MessageBindings(host: host).wait(
          in: try Self(host: host).context(call, "wait_for"), call)
      },
      "defer": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "defer")
        let function = try Arguments(host, call, method: "defer").function(1)
        context.addCleanup(ScriptCleanup(host, function))
        return call.answer()
      },
      "progress": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "progress")
        let arguments = Arguments(host, call, method: "progress")
        let done = try arguments.amount(1)
        context.progress(done, of: arguments.isNil(2) ? nil : try arguments.amount(2))
        return call.answer()
      },
      "end_group": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "end_group")
        if host.isWorker {
          throw host.usage(
            call, "ctx:end_group isn't there in a worker: give the group the option 'stop_when'")
        }
        guard context.endGroup() else {
          throw host.usage(
            call, "bad use of 'end_group' (\(context.op.name) isn't executed by a group)")
        }
        return call.answer()
      },
      "fail": BoundMethod { host, call in
        let context = try Self(host: host).context(call, "fail")
        let arguments = Arguments(host, call, method: "fail")
        if case let value = try call.value(2), host.isError(value),
          case .reference(let table) = value
        {
          context.fail(try host.flowError(table: table))
          throw LuaError(value: value, message: "")
        }
        let message = try Self(host: host).failureMessage(arguments)
        let fields = try Self(host: host).failureFields(arguments)
        let table = try host.makeError(
          FlowError(
            .error, message, op: context.displayName,
            traceback: host.vm.traceback(level: 1)
          ).with { $0.path = context.path }, fields: fields)
        let error = try host.flowError(table: table)
        try Self(host: host).context(call, "fail").fail(error)
        throw LuaError(value: .reference(table), message: message)
      },
    ]
  }

  /// `ctx.name`, `ctx.attempt`, `ctx.index`, `ctx.lane`, `ctx.key`, `ctx.run`, `ctx.error`.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let name = call.bytes(2)?.description ?? "__index"
    let context = try Self(host: host).context(call, name)
    switch name {
    case "name": return try host.answer(call, .bytes(context.displayName))
    case "attempt": return call.answer(.integer(Int64(context.attempt)))
    case "index":
      return call.answer(context.index > 0 ? .integer(Int64(context.index)) : .nil)
    case "error":
      guard let error = context.endingError else { return call.answer(.nil) }
      return call.answer(try host.luaError(error))
    case "lane": return try host.answer(call, host.lane)
    case "key": return try host.answer(call, .bytes(context.key))
    case "history": return call.answer(try host.vm.list(of: context.history))
    case "run" where host.isWorker:
      throw host.usage(call, "ctx.run isn't there in a worker: the run is the main thread's")
    case "run": return call.answer(context.run, host.types.run)
    default:
      if call.kind(2) == .string, context.bucket.has(try Self(host: host).key(call, name)) {
        throw host.usage(
          call, "ctx has no field '\(name)': ctx:get \"\(name)\" reads the data")
      }
      return try host.absentField(call, of: "ctx", known: fields + methods.names)
    }
  }

  private static let fields: [String] = [
    "name", "attempt", "index", "error", "lane", "key", "history", "run",
  ]

  /// The live context of a direct call. It isn't retained, because its execution keeps it and releases
  /// it only between two waits of its body.
  @inline(__always)
  private func unmanagedContext(_ call: LuaDirectCall) -> Unmanaged<OpContext>? {
    // Nor is the loop, which the host holds: there are weak references to it, so that a retain and a release
    // would take 170 instructions.
    Unmanaged.passUnretained(host.activeLoop)._withUnsafeGuaranteedRef {
      $0.unmanagedContext(slot: call.slot, generation: call.generation)
    }
  }

  /// The op that a `ctx` belongs to, if it hasn't finished.
  private func context(_ call: LuaCall, _ function: String) throws -> OpContext {
    guard let handle = call.handle(1, host.types.context) else {
      throw Arguments(host, call, method: function).wrongSelf("ctx")
    }
    guard let context = host.context(slot: handle.slot, generation: handle.generation) else {
      throw host.usage(call, "bad use of '\(function)' (the op of this ctx has finished)")
    }
    return context
  }

  /// Returns a value of the data; of a stream its items.
  private func answer(
    _ call: LuaCall, _ found: FlowValue, _ key: DataKey, _ context: OpContext
  ) throws -> LuaAnswer {
    if let items = try StreamBindings.items(of: found, key, context, host, call) { return items }
    return try host.answer(call, try host.shared(found, key, in: context.bucket))
  }

  /// The key in argument 1, interned.
  private func key(_ call: LuaCall, _ function: String) throws -> DataKey {
    guard call.kind(2) == .string else {
      throw Arguments(host, call, method: function).wrong(1, expected: "string")
    }
    if let id = call.interned(2) { return DataKey(id: UInt32(truncatingIfNeeded: id)) }
    let name = call.bytes(2) ?? ""
    try host.checkMemory(forKey: name)
    let key = host.loop.keys.intern(name)
    try call.intern(2, as: Int64(key.id))
    return key
  }

  /// The type in argument 2 of `get`.
  private func typeArgument(_ call: LuaCall) throws -> FlowValueType {
    let arguments = Arguments(host, call, method: "get")
    switch call.kind(3) {
    case .string:
      return try host.type(spelled: try arguments.string(2)) { arguments.wrong(2, $0) }
    case .function: return host.type(tested: try arguments.function(2))
    default: throw arguments.wrong(2, expected: "type (string or function)")
    }
  }

  /// Finishes the op with an input error and returns the error for unwinding.
  private func end(_ context: OpContext, _ error: FlowError) -> any Error {
    let error = host.withTable(error, of: context)
    context.fail(error)
    return host.raise(error)
  }

  /// The message passed to `ctx:fail`: a string, a number, or a value with `__tostring`.
  private func failureMessage(_ arguments: Arguments) throws -> ByteString {
    if let text = arguments.call.bytes(arguments.place(1)) { return text }
    let value = try arguments.call.value(arguments.place(1))
    switch value {
    case .integer, .number: break
    case .reference(let reference) where host.vm.hasMetafield("__tostring", reference): break
    default: throw arguments.wrong(1, expected: "string")
    }
    return try host.vm.tostring(value)
  }

  /// The fields passed to `ctx:fail`.
  private func failureFields(_ arguments: Arguments) throws -> [(ByteString, LuaValue)] {
    if arguments.isNil(2) { return [] }
    return try host.vm.pairs(of: try arguments.table(2)).map { key, value in
      guard case .string(let name) = key else {
        throw arguments.wrong(
          2, "fields are named by strings, got a key of type \(host.vm.typeName(of: key))")
      }
      if ScriptHost.errorFields.contains(name) {
        throw arguments.wrong(2, "field '\(name)' belongs to the error itself")
      }
      return (name, value)
    }
  }
}

extension LuaDirectCall {
  /// An engine value that Lua copies as the result; declines for any other.
  @inline(__always)
  func answer(copyOf value: consuming FlowValue?) -> LuaDirectAnswer {
    switch value {
    case .null?: answerNil()
    case .boolean(let flag)?: answer(flag)
    case .integer(let integer)?: answer(integer)
    case .number(let number)?: answer(number)
    case .bytes(let bytes)?: bytes.bytes.withUnsafeBytes { answer(bytes: $0) }
    case .opaque?, nil: pass()
    }
  }
}

extension LuaCall {
  /// An argument as an engine value; strings are copied once.
  func engineValue(_ index: Int) throws -> FlowValue {
    if let text = bytes(index) { return .bytes(text) }
    return FlowValue(try value(index))
  }
}
