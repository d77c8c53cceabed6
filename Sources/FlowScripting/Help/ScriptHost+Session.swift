package import FlowEngine
@_spi(Scripting) package import LuaVM

/// The functions of a host for interactive sessions.
extension ScriptHost {
  package var session: HostSession { service { HostSession() } }

  /// Whether a session reads the standard input of the process, so that its code can't.
  var sessionReadsInput: Bool { existing(HostSession.self)?.readsInput == true }

  /// The chunk of a session that is running.
  var chunk: SessionChunk? { existing(HostSession.self)?.chunk }

  /// From now on an interruption cancels only tasks that the next code starts: background tasks
  /// continue.
  package func beginChunk() {
    let chunk = SessionChunk(on: loop)
    session.chunk = chunk
    chunkTasks = chunk.tasks
    // A signal was for code before it.
    vm.allowTextWaits()
  }

  /// The error with which the code of a chunk ends that has just returned: an interruption that was
  /// raised in an op or task. Nil if there was none.
  package var chunkInterruption: (any Error)? {
    guard chunk?.isInterruptedWithin == true else { return nil }
    let message = Self.interruption
    return LuaError(value: .string(message), message: message)
  }

  /// The code has ended: tasks that it started continue in the background or, if the code was
  /// interrupted while busy, are cancelled. From now on an interruption cancels everything again.
  package func endChunk() {
    guard let ended = chunk else { return }
    ended.keepInterrupted()
    cancel(ended, reason: Self.interruption)
    ended.tasks.abandon()
    (session.chunk, chunkTasks) = (nil, nil)
  }

  /// Cancels everything that a chunk has started, and runs until it has settled.
  func cancel(_ chunk: SessionChunk, reason: ByteString) {
    guard chunk.loop === loop else { return }
    let tasks = chunk.tasks
    var stalls = StallPass(times: 2)
    // Like `cancelEverything`.
    var rounds = 100
    while !tasks.isEmpty, rounds > 0 {
      rounds -= 1
      for task in tasks.all { task.cancel(reason: reason) }
      let additions = tasks.additions
      while !loop.turn(until: { tasks.isEmpty || tasks.additions != additions }) {
        guard stalls.failNext(on: loop, among: tasks) else { return }
      }
    }
  }

  /// Cancels everything and ends the process if its end has been requested. A run or task must not
  /// call it.
  package func answerTermination() {
    if vm.takeTermination() || ending.isTerminating { terminate() }
  }

  /// Unobserved failures; each is returned once.
  package func takeUnobservedFailures() -> [(name: ByteString, error: FlowError)] {
    loop.takeUnobservedFailures().map { ($0.name, $0.error) }
  }

  /// The names of the runs and tasks that keep a script alive, in the order of their start.
  package var pendingNames: [ByteString] { loop.pendingTasks.map(\.title) }

  /// The name in messages for objects of a value's kind; nil for a value that isn't of this host.
  func className(of value: LuaValue) -> String? {
    guard case .reference(let reference) = value, reference.vm === vm else { return nil }
    if vm.areSame(reference, module) { return ScriptHost.modulePart }
    if let name = submoduleName(of: reference) { return name }
    if isError(value) { return "error" }
    guard reference.kind == .userdata else { return nil }
    let name = vm.typeName(of: value).description
    // A program is a task with further methods.
    if vm.object(in: value, types.task) is ProcessTask { return "exectask" }
    let own = [
      types.op.name, types.flow.name, types.machine.name, types.run.name, types.task.name,
      types.taskContext.name, types.context.name, types.registry.name, types.secret.name,
      types.step.name, types.handler.name, types.dispatcher.name,
    ]
    let later = [
      existing(LazyType<FileWatch>.self)?.type.name, existing(HTTPTypes.self)?.response.name,
    ]
    return own.contains(name) || later.contains(name) ? name : nil
  }

  /// The names of the members of an object of this host.
  ///
  /// - Parameters:
  ///   - value: Any value.
  ///   - methodsOnly: Whether fields are left out.
  /// - Returns: The names, sorted; nil for a value that isn't such an object.
  package func members(of value: LuaValue, methodsOnly: Bool) -> [String]? {
    guard let name = className(of: value) else { return nil }
    // Its fields are in the table; those of a submodule that isn't made yet are not.
    if name == ScriptHost.modulePart {
      return methodsOnly
        ? [] : Self.submodules.map(\.name).filter { openSubmodules[ByteString($0)] == nil }
    }
    if name == types.registry.name { return registry.names.map(\.description) }
    return AnnotationReader().members(of: name, methodsOnly: methodsOnly)
  }

  /// The op in `flow.ops` with a name, as scripts see it.
  package func registeredOp(_ name: ByteString) -> LuaValue? {
    registry[name].flatMap { try? value(of: $0) }
  }

  /// The help about a value; nil describes `help` itself. Ends with a newline.
  ///
  /// - Parameters:
  ///   - value: The value; nil for `help` itself.
  ///   - columns: The maximum width of a line.
  /// - Returns: The text.
  package func help(about value: LuaValue?, columns: Int = 80) -> ByteString {
    HelpText.wrapped(text(about: value), columns: columns)
  }

  private func text(about value: LuaValue?) -> ByteString {
    guard let value else { return Self.introduction }
    let reader = AnnotationReader()
    if let op = op(in: value) { return help(about: op, reader) }
    if case .string(let name) = value { return help(named: name.description, reader) }
    if let function = function(in: value),
      let text = reader.text(function.name, of: function.className)
    {
      return ByteString(text + "\n")
    }
    guard let name = className(of: value) else { return standardHelp(about: value) }
    return help(aboutClass: name, reader)
  }

  /// The text about a class, with a line for each member that the host allows.
  private func help(aboutClass name: String, _ reader: AnnotationReader) -> ByteString {
    let members = reader.members(of: name, methodsOnly: false).compactMap { member in
      allows(member, of: name) ? reader.text(member, of: name).map { Self.summary(of: $0) } : nil
    }
    let lines = [reader.text(ofClass: name) ?? ""] + members.map { "  " + $0 }
    return ByteString(lines.joined(separator: "\n") + "\n")
  }

  /// The help about a function or library of Lua's own.
  private func standardHelp(about value: LuaValue) -> ByteString {
    if case .reference(let reference) = value {
      if reference.kind == .function, let bytes = FunctionNames(vm)[reference],
        let text = StandardLibraryHelp.text(
          of: ByteString(bytes).description, in: vm.configuration)
      {
        return ByteString(text + "\n")
      }
      for library in StandardLibraryHelp.libraries {
        guard let global = try? vm.global(library.name),
          case .reference(let table) = global, vm.areSame(table, reference),
          let text = StandardLibraryHelp.text(ofLibrary: library.name, in: vm.configuration)
        else { continue }
        return ByteString(text + "\n")
      }
    }
    let kind = HelpText.withArticle(vm.typeName(of: value).description)
    return "there is no help about \(ByteString(kind)) value; see help()\n"
  }

  private static let introduction = """
    help(x) describes x:
      help(flow)         the functions of the module
      help(flow.op)      one of them, as help "flow.op" does; help "run:summary" describes a method
      help(MyOp)         an op: its doc, its inputs and outputs, its policy
      help(my_flow)      a flow: its plan
      help(string.rep)   a function of Lua; help(string) lists its library
    _ is the last result, _error the last error. A line that begins with ":" or "." continues the last one.
    Tab completes, Alt-Enter begins a new line, Ctrl-R searches the history, Ctrl-C drops the line or interrupts the running chunk, Ctrl-D leaves once everything has ended.
    .load FILE runs a file, .save FILE writes the chunks that ran, .edit opens the last chunk in an editor, exit leaves.

    """

  /// The signature with the first sentence.
  private static func summary(of text: String) -> String {
    let lines = text.split(separator: "\n", maxSplits: 2)
    guard lines.count > 1 else { return text }
    return lines[0] + "  –  " + HelpText.sentence(lines[1])
  }

  /// `flow.op`, `op`, `run:summary`, `run.data`.
  private func help(named name: String, _ reader: AnnotationReader) -> ByteString {
    let words = name.split { $0 == "." || $0 == ":" }
    if let last = words.last.map(String.init) {
      let owner = words.count > 1 ? words[words.count - 2].lowercased() : "flow"
      // A method of flows is called with a colon.
      let isMethod = name.contains(":")
      if owner == "flow", !isMethod, Self.submodules.contains(where: { $0.name == last }) {
        return help(aboutClass: last, reader)
      }
      let places = owner == "flow" && !isMethod ? ["module", "flow"] : [owner]
      let text = places.lazy.compactMap { reader.text(last, of: $0) }.first
      // A word may also be a method or an option of something else.
      let others = words.count == 1 ? reader.entries(named: last, notOf: places) : []
      if text != nil || !others.isEmpty {
        if text == nil, others.count == 1 { return ByteString(others[0] + "\n") }
        let list = others.map { "  " + Self.summary(of: $0) }
        return ByteString(([text].compactMap(\.self) + list).joined(separator: "\n") + "\n")
      }
      if words.count == 1, let text = reader.text(ofClass: last.lowercased()) {
        return ByteString(text + "\n")
      }
      if let op = registry[ByteString(last)] { return help(about: op, reader) }
    }
    let configuration = vm.configuration
    if let text = StandardLibraryHelp.text(of: name, in: configuration)
      ?? StandardLibraryHelp.text(ofLibrary: name, in: configuration)
    {
      return ByteString(text + "\n")
    }
    let module = reader.members(of: ScriptHost.modulePart, methodsOnly: false)
    var known = module.map { "flow." + $0 } + module + StandardLibraryHelp.names
    for part in Self.submodules {
      known += reader.members(of: part.name, methodsOnly: false).map { "\(part.name).\($0)" }
    }
    for kind: String in ["op", "flow", "machine", "run", "task", "ctx", "context"] {
      known += reader.members(of: kind, methodsOnly: true).map { kind + ":" + $0 }
    }
    known += registry.names.map(\.description)
    let hint = NearestName.of(name, in: known).map { " (did you mean '\($0)'?)" } ?? ""
    return "there is no help about '\(name)'\(hint); see help()\n"
  }

  /// The name of a function of the module or of a submodule, and the class of the annotations that
  /// describes it.
  func function(in value: LuaValue) -> (className: String, name: String)? {
    guard case .reference(let function) = value, function.kind == .function else { return nil }
    let tables =
      [(ScriptHost.modulePart, module)] + openSubmodules.map { ($0.key.description, $0.value) }
    for (className, table) in tables {
      guard let pairs = try? vm.pairs(of: table) else { continue }
      for case (.string(let name), .reference(let other)) in pairs
      where vm.areSame(function, other) {
        return (className, name.description)
      }
    }
    return nil
  }

  private func help(about op: Op, _ reader: AnnotationReader) -> ByteString {
    let kind = op is Flow ? "flow" : op is MachineOp ? "machine" : "op"
    var text: ByteString = "\(kind) \(op.name)\n"
    if let doc = op.doc { text = text + doc + "\n" }
    for (title, declared) in [("needs", op.needs), ("gives", op.gives)] where !declared.isEmpty {
      text = text + "\(title):\n"
      for each in declared {
        let doc = each.doc.map { "  –  \($0)" as ByteString } ?? ""
        text = text + "  \(each.name): \(each.type.name)\(doc)\n"
      }
    }
    if let retry = op.retry {
      text = text + "retry: \(retry.attempts) attempts, delay \(Self.seconds(retry.delay))"
      if retry.factor != 1 { text = text + ByteString(", factor \(retry.factor)" as String) }
      if let longest = retry.maxDelay { text = text + ", at most \(Self.seconds(longest))" }
      if retry.jitter > 0 { text = text + ByteString(", jitter \(retry.jitter)" as String) }
      text = text + "\n"
    }
    if let timeout = op.timeout { text = text + "timeout: \(Self.seconds(timeout))\n" }
    if let memory = op.memoryLimit { text = text + "memory: \(memory.text)\n" }
    if op is Flow { return text + "plan:\n" + op.plan() }
    if let machine = op as? MachineOp, let logic = machine.logic as? ScriptMachineLogic {
      text = text + "steps:\n"
      for step in logic.steps.names { text = text + "  \(step)\n" }
    }
    return text
  }

  private static func seconds(_ duration: Duration) -> String {
    let seconds = duration.inSeconds
    return seconds == seconds.rounded() && seconds.magnitude < 1e15
      ? "\(Int64(seconds))s" : "\(seconds)s"
  }
}
