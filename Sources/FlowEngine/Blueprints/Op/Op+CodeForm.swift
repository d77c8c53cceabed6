extension Op: CodeHolder {
  /// The form of the op's code: its body's or, for a flow, a machine or a decorator, the form of
  /// its structure and of all ops and functions within it. Names of ops within it count, its own name
  /// and its policies don't. nil when nothing can be compared but the name.
  package func codeForm() throws -> CodeForm? {
    if let own = try ownCodeForm() { return own }
    if codeParts.isEmpty { return nil }
    var writer = CodeFormWriter("op")
    var ops: [Op] = [self]
    var numbers = [ObjectIdentifier(self): 0]
    var place: ByteString?
    var forms: [CodeForm] = []
    var next = 0
    // Ops may be nested at any depth, so that none is written within another.
    while next < ops.count {
      let op = ops[next]
      if next > 0 { writer.add(op.name) }
      let own = next > 0 ? try op.ownCodeForm() : nil
      next += 1
      writer.add(own != nil)
      if let own {
        place = place ?? own.place
        forms.append(own)
        writer.add(own.bytes)
        continue
      }
      let parts = op.codeParts
      writer.add(parts.count)
      for part in parts {
        switch part {
        case .text(let text):
          writer.add("text")
          writer.add(text)
        case .code(let inner as Op):
          let number = numbers[ObjectIdentifier(inner)] ?? ops.count
          if number == ops.count {
            numbers[ObjectIdentifier(inner)] = number
            ops.append(inner)
          }
          writer.add("op")
          writer.add(number)
        case .code(let holder):
          let form = try holder.codeForm()
          place = place ?? form?.place
          if let form { forms.append(form) }
          writer.add("code")
          writer.add(form?.bytes ?? [])
        case .value(let value):
          writer.add("value")
          writer.add(value.logText)
        }
      }
    }
    return writer.form(place: place) { [forms] in try forms.flatMap { try $0.details() } }
  }

  private func ownCodeForm() throws -> CodeForm? {
    try body?.codeForm() ?? madeBy?.codeForm()
  }
}

extension Flow {
  /// The steps, with the settings of groups that decide what is executed. The initial data isn't code:
  /// ops get it as their inputs.
  func blueprintParts() -> [CodePart] {
    var result: [CodePart] = [.text(blueprint.graph == nil ? "flow" : "graph")]
    if blueprint.graph?.keepsGoing == true { result.append(.text("keep_going")) }
    for (position, step) in blueprint.steps.enumerated() {
      result += parts(before: position)
      for before in blueprint.graph?.after[position] ?? [] {
        result += [.text("after"), .text(before.name)]
      }
      if let condition = blueprint.conditions[position] {
        result += [.text("when"), .code(condition)]
      }
      result += parts(of: step)
    }
    result.append(.text("finally"))
    for step in blueprint.finally { result += parts(of: step) }
    for callback in blueprint.willStart { result += [.text("will_start"), .code(callback)] }
    for callback in blueprint.didFinish { result += [.text("did_finish"), .code(callback)] }
    return result
  }

  private func parts(of step: Step) -> [CodePart] {
    switch step.kind {
    case .op, .flow: return [.code(step.op)]
    case .group(let group):
      let keys = [group.input, group.output, group.failures, group.itemKey, group.collect]
      let fields = keys.map { $0.map { "=" + $0 } ?? "" }
      let flags: ByteString = group.allowFailure ? "allow_failure" : ""
      return [.text("group")] + fields.map { .text($0) } + [.text(flags), .code(step.op)]
    case .parallel(let count): return [.text(ByteString("parallel \(count)"))]
    case .cases(let block): return [.text(ByteString("cases \(block)"))]
    }
  }

  /// The branches that begin at a position, and the end of cases there.
  private func parts(before position: Int) -> [CodePart] {
    var result: [CodePart] = []
    for block in blueprint.cases {
      if block.end == position { result.append(.text("combine")) }
      for branch in block.branches where branch.first == position {
        switch branch.condition {
        case .equals(let key, let value):
          result += [.text("case"), .text(key), .text(value)]
        case .predicate(let predicate): result += [.text("case"), .code(predicate)]
        case .otherwise: result.append(.text("otherwise"))
        }
      }
    }
    return result
  }
}

extension MachineDefinition {
  /// The steps and their transitions, by their names.
  func codeParts(_ logic: any MachineLogic) -> [CodePart] {
    let flags = [triesAnyStepFirst, hasNavigator, hasReducer, hasEmitter, hasProvider]
    var result: [CodePart] = [
      .text("machine"), .text(logic.name(ofStep: start)),
      .text(ByteString(flags.map { $0 ? 49 : 48 })), .code(logic),
    ]
    for step in steps {
      result.append(.text(step.number.map { "step " + logic.name(ofStep: $0) } ?? "any step"))
      if step.isFinal { result.append(.text("final")) }
      if case .op(let op) = step.action { result.append(.code(op)) }
      for handler in step.handlers {
        let event = handler.event.map { "on " + logic.name(ofEvent: $0) } ?? "next"
        result += [.text(event), .text(handler.transition.kindName)]
        if let step = handler.transition.step { result.append(.text(logic.name(ofStep: step))) }
      }
    }
    return result
  }
}

extension Op {
  /// The policies, primary keys and limits.
  var ownSettings: [CodePart] {
    var parts = policy?.codeParts ?? []
    for (name, key) in [
      ("input", declarations.givenPrimaryInput), ("output", declarations.givenPrimaryOutput),
    ] as [(ByteString, ByteString?)] {
      if let key { parts += [.text(name), .text(key)] }
    }
    if let limit = memoryLimit { parts.append(.text(ByteString("memory \(limit.bytes)"))) }
    return parts
  }
}

extension Blueprint {
  /// The data, and what the places of steps have of their own.
  var settings: [CodePart] {
    var parts: [CodePart] = []
    for (name, value) in data.sorted(by: { $0.name < $1.name }) {
      parts += [.text("data"), .text(name), .value(value)]
    }
    if let limit = graph?.maxConcurrent {
      parts.append(.text(ByteString("max_concurrent \(limit)")))
    }
    for (position, step) in (steps + finally).enumerated() {
      var own: [CodePart] = []
      if case .group(let group) = step.kind { own += group.codeParts }
      if let policy = step.policy, policy !== step.op.policy { own += policy.codeParts }
      if !own.isEmpty { parts += [.text(ByteString("step \(position)"))] + own }
    }
    return parts
  }
}

extension OpPolicy {
  fileprivate var codeParts: [CodePart] {
    var texts: [String] = []
    var code: [CodePart] = []
    if let retry {
      texts.append("retry \(retry.attempts) \(retry.delay) \(retry.factor) \(retry.jitter)")
      if let longest = retry.maxDelay { texts.append("max_delay \(longest)") }
      if let rule = retry.rule as? any CodeHolder { code += [.text("retry"), .code(rule)] }
    }
    if let timeout { texts.append("timeout \(timeout)") }
    if let grace { texts.append("grace \(grace)") }
    if let effect { texts.append("effect \(effect.rawValue)") }
    if let cache {
      texts.append("cache \(cache.expires.map { String(describing: $0) } ?? "")")
      code.append(.text(cache.version))
      if let key = cache.key as? any CodeHolder { code += [.text("key"), .code(key)] }
    }
    if let undo { code += [.text("undo"), .code(undo)] }
    let parts: [CodePart] = texts.map { .text(ByteString($0)) }
    return parts + code
  }
}

extension GroupDispatcher {
  /// All settings, for code that has the dispatcher itself and for a flow in another op's code.
  package var codeParts: [CodePart] {
    let keys = [input, output, failures, itemKey, collect].map { $0.map { "=" + $0 } ?? "" }
    var parts: [CodePart] = keys.map { .text($0) }
    let rate: String = self.rate.map { " rate \($0.count) \($0.period)" } ?? ""
    let text: String =
      "group \(maxConcurrent) \(allowFailure) \(allowEmpty) \(holdsSlots)\(rate)\(isOrdered ? "" : " unordered")"
    parts.append(.text(ByteString(text)))
    parts += [.value(absent ?? .null), .value(labelSource)]
    return stopRule == nil ? parts : parts + [.text("stop_when"), .value(stopSource)]
  }
}
