import FlowEngine

/// Prints what the engine's own part of an op costs; see `scripts/bench`.
func measure(count: Int) {
  let loop = FlowEventLoop()
  report("clock read", count) {
    let clock = loop.clock
    var last = clock.now
    for _ in 0..<count { last = max(last, clock.now) }
    return last < clock.now ? nil : "the clock stands still"
  }

  let empty = Op("EmptyOp") { _ in }
  let flow = Flow("steps")
  report("add", count) {
    for _ in 0..<count { flow.add(empty) }
    return nil
  }
  for _ in 0..<3 {
    report("op", count) {
      let run = flow.start(on: loop)
      return run.state == .succeeded ? nil : "failed"
    }
  }

  let member = Op("MemberOp", primaryInput: "item") { _ in }
  let items = Array(0..<count)
  let group = Flow("group").data("items", items)
    .addGrouped(member, GroupDispatcher(input: "items"))
  for _ in 0..<2 {
    report("group item", count) { group.start(on: loop).state == .succeeded ? nil : "failed" }
  }

  let copying = Op("CopyOp", primaryInput: "item", primaryOutput: "copy") { context in
    context.set("copy", try context.value("item", as: Int.self))
  }
  let collecting = Flow("collect").data("items", items)
    .addGrouped(copying, GroupDispatcher(input: "items", output: "copies"))
  report("group item with get, set and output", count) {
    collecting.start(on: loop).state == .succeeded ? nil : "failed"
  }

  measureSwiftOps(on: loop, count)

  let single = Flow("single").add(empty)
  report("run of one op", count / 10) {
    for _ in 0..<count / 10 where single.start(on: loop).state != .succeeded { return "failed" }
    return nil
  }

  var nested = Flow("inner").add(empty)
  report("nested flow, built", count) {
    for _ in 0..<count { nested = Flow("outer").add(nested) }
    return nil
  }
  report("nested flow, run", count) { nested.start(on: loop).state == .succeeded ? nil : "failed" }
  report("nested flow, released", count) {
    nested = Flow()
    return nil
  }
}

/// Ops that read a string and leave one, in every form; the rounds take turns, so that what else the
/// machine does meets all of them.
private func measureSwiftOps(on loop: FlowEventLoop, _ count: Int) {
  let closure = Op("ClosureOp", needs: ["in": "string"], gives: ["out": "string"]) { context in
    context.set("out", try context.value("in", as: String.self))
  }
  let asyncClosure = Op("AsyncOp", needs: ["in": "string"], gives: ["out": "string"]) {
    context async throws in
    context.set("out", try context.value("in", as: String.self))
  }
  let waiting = Op("WaitOp", needs: ["in": "string"], gives: ["out": "string"]) { context in
    await Task.yield()
    context.set("out", try context.value("in", as: String.self))
  }
  let forms: [(String, Op)] = [
    ("closure op with input and output", closure), ("typed op", EchoOp().makeOp()),
    ("async op that doesn't wait", asyncClosure),
    ("async typed op that doesn't wait", AsyncEchoOp().makeOp()),
    ("async op that waits once", waiting),
  ]
  let count = count / 10
  let flows = forms.map { _, op in
    let flow = Flow("forms").data("in", "some text")
    for _ in 0..<count { flow.add(op) }
    return flow
  }
  for _ in 0..<3 {
    for (form, flow) in zip(forms, flows) {
      report(form.0, count) {
        let run = flow.start(on: loop)
        do {
          try run.wait()
          return nil
        } catch {
          return "failed"
        }
      }
    }
  }
}

private struct EchoOp: TypedOp {
  let text = Input<String>("in")
  let copy = Output<String>("out")

  func run(_ data: OpData<EchoOp>) { data.copy = data.text }
}

private struct AsyncEchoOp: AsyncTypedOp {
  let text = Input<String>("in")
  let copy = Output<String>("out")

  func run(_ data: OpData<AsyncEchoOp>) async throws { data.copy = data.text }
}

private func report(_ title: String, _ count: Int, _ body: () -> String?) {
  let clock = ContinuousClock()
  let begin = clock.now
  let note = body()
  let (seconds, attoseconds) = (clock.now - begin).components
  let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
  let each = (nanoseconds / Double(max(count, 1)) * 10).rounded() / 10
  print("\(title): \(each) ns\(note.map { ", \($0)" } ?? "")")
}
