import FlowEngine
import Testing

@Suite("Runs as graphs")
struct RunGraphTests {
  @Test("The graph of a run shows how each op ended")
  func aRunShowsHowEachOpEnded() throws {
    let slow = waitingOp("SlowOp", 0.25)
    let flaky = Op("FlakyOp") { context in
      if context.attempt < 3 { context.fail(FlowError(.error, "not yet")) }
    }.with(retry: RetryPolicy(attempts: 3))
    let item = Op("ItemOp", needs: ["x": "integer"]) { context in
      if try context.value("x", as: Int.self) > 2 { context.fail(FlowError(.error, "too large")) }
    }
    let flow = Flow("f").data("list", [Int64(1), 2, 3].flowValue).data("plan", "b")
      .add(slow).add(flaky)
      .add(Flow("inner").add(slow).case("plan", "a").add(drawnOp("UnreachedOp")))
      .addGrouped(item, GroupDispatcher(input: "list", allowFailure: true))
      .addParallel(drawnOp("FailOp"), drawnOp("NeverOp"))
      .add(drawnOp("UnreachedOp"))
      .addFinally(drawnOp("CloseOp"))
    let run = flow.start(on: makeLoop())
    // Later changes of the flow don't change the run.
    flow.add(drawnOp("LaterOp"))
    #expect(run.dot().description.contains(#"n2 [label="SlowOp\nrunning", style=filled, "#))
    #expect(run.dot().description.contains(#"[label="end\nrunning for 0s", shape=oval, "#))
    try run.waitUntilEnd()
    run.markObserved()
    let unreached = "\\nnot reached"
    let dashed = "style=dashed, fontcolor=gray40"
    let good = "style=filled, fillcolor=palegreen"
    let bad = "style=filled, fillcolor=lightcoral"
    let text = run.dot().description
    let expected = [
      "n1 [label=\"start\", shape=oval];",
      "n2 [label=\"SlowOp\\nsucceeded in 0.25s\", \(good)];",
      "n3 [label=\"FlakyOp\\nretry: 3 attempts\\nsucceeded in 0s, attempt 3\", \(good)];",
      "label=\"inner\\nsucceeded in 0.25s\";", "color=forestgreen;",
      "n4 [label=\"SlowOp\\nsucceeded in 0.25s\", \(good)];",
      "n5 [label=\"Cases\\nno case matched\", shape=diamond, \(good)];",
      "n6 [label=\"UnreachedOp\(unreached)\", \(dashed)];",
      "n7 [label=\"ItemOp\\n2 succeeded, 1 failed in 0s (median)\", \(bad)];",
      "n9 [label=\"FailOp\\nfailed in 0s\", \(bad)];",
      "n10 [label=\"NeverOp\(unreached)\", \(dashed)];",
      "n12 [label=\"UnreachedOp\(unreached)\", \(dashed)];",
      "n13 [label=\"CloseOp\\nsucceeded in 0s\", \(good)];",
      "n14 [label=\"end\\nfailed in 0.5s\", shape=oval, \(bad)];",
    ]
    for line in expected { #expect(text.contains("  \(line)\n"), "\(text)") }
    #expect(!text.contains("LaterOp"))
    #expect(text.hasSuffix("}\n") && !text.hasSuffix("\n\n"))
    if Graphviz.isInstalled { _ = try Graphviz.texts(run.dot()) }
  }

  @Test("The graph of a run shows the durations of items and of their group")
  func aRunShowsWhatItemsTookAndWhatTheirGroupTook() throws {
    let flow = Flow("f").data("list", [Int64(1), 2, 3, 4].flowValue)
      .addGrouped(
        waitingOp("SlowOp", 1), GroupDispatcher(input: "list", maxConcurrent: 2, as: "x")
      )
      .data("one", [Int64(1)].flowValue)
      .addGrouped(waitingOp("OnceOp", 1), GroupDispatcher(input: "one", as: "x"))
      .addGrouped(waitingOp("NeverOp", 1), GroupDispatcher(input: "none", as: "x"))
    let run = flow.start(on: makeLoop())
    #expect(run.dot().description.contains(#"max_concurrent = 2\nrunning";"#))
    try run.waitUntilEnd()
    run.markObserved()
    let text = run.dot().description
    for part in [
      #"label="list\nmax_concurrent = 2\n4 items in 2s";"#,
      #"[label="SlowOp\n4 succeeded in 1s (median)", "#,
      #"label="one\nmax_concurrent = 3\n1 item in 1s";"#,
      #"[label="OnceOp\n1 succeeded in 1s", "#,
      #"label="none\nmax_concurrent = 3\ncouldn't begin";"#,
    ] {
      #expect(text.contains(part), "\(text)")
    }
  }

  @Test("The graph of a run shows cancellations, branches taken and retries")
  func aRunShowsWhatWasCancelledTakenOrTriedAgain() throws {
    let flow = Flow("f").needs(["plan": "string"])
      .case("plan", "a").add(waitingOp("AOp")).case("plan", "b").add(drawnOp("BOp")).combine()
      .addParallel(waitingOp("LongOp", 5), waitingOp("ShortOp") { $0.fail(FlowError(.error, "x")) })
    let run = flow.with(retry: RetryPolicy(attempts: 2)).start(
      on: makeLoop(), data: InitialData([("plan", .bytes("a"))]))
    try run.waitUntilEnd()
    run.markObserved()
    let text = run.dot().description
    for part in [
      #"label="f\nretry: 2 attempts";"#,
      #"[label="Cases\nplan: a", shape=diamond, style=filled, fillcolor=palegreen];"#,
      #"[label="AOp\nsucceeded in 1s, last of 2", style=filled, fillcolor=palegreen];"#,
      #"[label="LongOp\ncancelled in 1s, last of 2", style=filled, fillcolor=khaki];"#,
      #"[label="ShortOp\nfailed in 1s, last of 2", style=filled, fillcolor=lightcoral];"#,
      #"[label="BOp\nnot reached", style=dashed, fontcolor=gray40];"#,
    ] {
      #expect(text.contains(part), "\(text)")
    }
    // An op alone.
    let alone = drawnOp("FailOp").start(on: makeLoop())
    alone.markObserved()
    #expect(alone.dot().description.contains(#"n2 [label="FailOp\nfailed in 0s", "#))
    // A value that is a secret in the run.
    let hidden = Flow("f").data("key", FlowSecret("swordfish"))
      .case("key", "swordfish").add(drawnOp("NoOp")).start(on: makeLoop())
    #expect(!hidden.dot().description.contains("swordfish"))
    #expect(hidden.dot().description.contains(#"[label="key = <redacted>"]"#))
    // A group of flows, and a group that can't begin.
    let group = Flow("f").data("list", list(["a", "b"]))
      .addGrouped(Flow("inner").add(waitingOp("ItemOp")), GroupDispatcher(input: "list", as: "x"))
      .addGrouped(drawnOp("OtherOp"), GroupDispatcher(input: "missing", as: "x")).start(
        on: makeLoop())
    try group.waitUntilEnd()
    group.markObserved()
    let groups = group.dot().description
    #expect(groups.contains(#"label="inner\n2 succeeded in 1s (median)";"#))
    #expect(groups.contains(#"[label="ItemOp\n2 succeeded in 1s (median)", "#))
    #expect(groups.contains(#"label="missing\nmax_concurrent = 3\ncouldn't begin";"#))
    #expect(groups.contains(#"[label="OtherOp\n1 failed", "#))
  }
}
