@testable import FlowEngine
import Testing

@Suite("The order of a graph")
struct GraphProgressTests {
  /// An op that needs and gives integers; `x?` is an optional need.
  private func op(_ name: String, _ needs: [String] = [], gives: [String] = []) throws -> Op {
    func declared(_ text: String) throws -> Declaration {
      text.hasSuffix("?")
        ? Declaration(String(text.dropLast()), try FlowValueType.parse("integer?"))
        : Declaration(text, try FlowValueType.parse("integer"))
    }
    return Op(
      name: name, needs: try needs.map(declared), gives: try gives.map(declared),
      body: ClosureBody { context in
        for give in gives { context.set(give, 1) }
      })
  }

  /// A diamond: A gives a; B and C need it, and give b and c; D needs both.
  private func diamond(needs: [String] = ["b", "c"]) throws -> Graph {
    try Graph("diamond").add(op("DOp", needs)).add(op("COp", ["a"], gives: ["c"]))
      .add(op("BOp", ["a"], gives: ["b"])).add(op("AOp", gives: ["a"]))
  }

  private func progress(_ graph: Graph) throws -> (GraphProgress, GraphPlan) {
    let plan = try #require(graph.blueprint.plan(nil))
    return (GraphProgress(count: graph.count, plan), plan)
  }

  @Test(
    "Steps are ready when all that they wait for have succeeded, the first that was added first")
  func ready() throws {
    var (progress, plan) = try progress(try diamond())
    #expect(plan.problem == nil)
    #expect(plan.levels == [2, 1, 1, 0])
    #expect(progress.start() == 3)
    #expect(progress.start() == nil)
    #expect(progress.end(3, .succeeded).isEmpty)
    #expect(progress.start() == 1)
    #expect(progress.end(1, .succeeded).isEmpty)
    #expect(progress.start() == 2)
    #expect(!progress.hasReady)
    #expect(progress.end(2, .succeeded).isEmpty)
    #expect(progress.start() == 0)
  }

  @Test("A failure skips all that needs it, through what was skipped")
  func failure() throws {
    var (progress, plan) = try progress(try diamond())
    _ = progress.start()
    let skipped = progress.end(3, .failed)
    #expect(skipped.map(\.step) == [1, 2, 0])
    #expect(skipped.allSatisfy { $0.hasFailed })
    #expect(skipped.map { $0.edges.map { plan.edges[$0].key } } == [["a"], ["a"], ["c", "b"]])
    #expect(!progress.hasReady)
  }

  @Test(
    "A failure counts more than a step that was skipped before it, and all that is missing is named"
  )
  func both() throws {
    let graph = try Graph("g").add(op("AOp", gives: ["a"])).add(op("BOp", gives: ["b"]))
    let both = try op("BothOp", ["a", "b"], gives: ["c"])
    graph.add(both).add(try op("LastOp"), after: [both])
    for ends in [[0, 1], [1, 0]] {
      var (progress, plan) = try progress(graph)
      #expect(progress.start() == 0)
      #expect(progress.start() == 1)
      #expect(progress.end(ends[0], ends[0] == 0 ? .skipped : .failed).isEmpty)
      let skipped = progress.end(ends[1], ends[1] == 0 ? .skipped : .failed)
      #expect(skipped.map(\.step) == [2, 3])
      #expect(skipped.allSatisfy { $0.hasFailed })
      #expect(Set(skipped[0].edges.map { plan.edges[$0].key }) == ["a", "b"])
    }
  }

  @Test("Those with the longest way to the end come first, if it is known")
  func ways() throws {
    let (_, plan) = try progress(try diamond())
    let times = [1.0, 2, 3, 4]
    #expect(plan.ways { times[$0] } == [1, 3, 4, 8])
    #expect(plan.ways { $0 == 1 ? .nan : $0 == 2 ? -1 : nil }.isEmpty)
    var ready = GraphProgress(count: 4, plan, ways: plan.ways { times[$0] })
    #expect(ready.start() == 3)
    #expect(ready.end(3, .succeeded).isEmpty)
    // BOp takes longer than COp, which was added first.
    #expect(ready.start() == 2)
    #expect(ready.start() == 1)
  }

  @Test("The ways of steps between which items pass are beside each other")
  func waysBeside() throws {
    let graph = Graph("g")
    graph.addGrouped(
      try op("AOp", ["x"], gives: ["y"]), GroupDispatcher(input: "xs", output: "ys"))
    graph.addGrouped(
      try op("BOp", ["y"], gives: ["z"]), GroupDispatcher(input: "ys", output: "zs"))
    graph.add(try op("LastOp", ["zs"]))
    let (_, plan) = try progress(graph)
    #expect(plan.ways { _ in 5 } == [10, 10, 5])
    #expect(plan.ways { $0 == 0 ? 20 : 5 } == [20, 10, 5])
  }

  @Test("A group whose input another group gives starts with that one, once")
  func passing() throws {
    func group(_ name: String, _ input: String, _ output: String, to graph: Graph) throws {
      _ = graph.addGrouped(
        try op(name, ["n"], gives: ["m"]), GroupDispatcher(input: input, output: output))
    }
    let graph = Graph("g")
    try group("AOp", "as", "bs", to: graph)
    try group("BOp", "bs", "cs", to: graph)
    _ = graph.add(try op("COp", ["bs"]))
    var (progress, plan) = try progress(graph)
    #expect(plan.edges.map(\.passesItems) == [true, false])
    #expect(progress.start() == 0)
    #expect(!progress.hasReady)
    #expect(progress.pass(from: 0).isEmpty)
    #expect(progress.pass(from: 0).isEmpty)
    #expect(progress.start() == 1)
    #expect(!progress.hasReady)
    #expect(progress.end(1, .succeeded).isEmpty)
    #expect(progress.end(0, .succeeded).isEmpty)
    #expect(progress.start() == 2)
    #expect(!progress.hasReady)
  }

  @Test("A step that was skipped keeps only those from executing that can't do without its data")
  func skip() throws {
    for (needs, isExecuted) in [(["b", "c?"], true), (["b?", "c"], false)] {
      var (progress, _) = try progress(try diamond(needs: needs))
      #expect(progress.start() == 3)
      #expect(progress.end(3, .succeeded).isEmpty)
      #expect(progress.start() == 1)
      #expect(progress.start() == 2)
      #expect(progress.end(1, .skipped).isEmpty)
      let skipped = progress.end(2, .succeeded)
      #expect(skipped.map(\.step) == (isExecuted ? [] : [0]))
      #expect(skipped.allSatisfy { !$0.hasFailed })
      #expect(progress.start() == (isExecuted ? 0 : nil))
    }
  }

  @Test(
    "An order without data holds after a step that was skipped, and not after one that has failed")
  func order() throws {
    let first = try op("FirstOp")
    let graph = try Graph("g").add(op("LastOp"), after: [first]).add(first)
    var (progress, plan) = try progress(graph)
    #expect(progress.start() == 1)
    #expect(progress.end(1, .skipped).isEmpty)
    #expect(progress.start() == 0)
    (progress, plan) = try self.progress(graph)
    #expect(progress.end(1, .failed).map(\.step) == [0])
    #expect(plan.edges.map(\.key) == [nil])
  }

  @Test("Steps without a plan are ready at once, in their order")
  func list() {
    var progress = GraphProgress(count: 2, nil)
    #expect(progress.start() == 0)
    #expect(progress.end(0, .failed).isEmpty)
    #expect(progress.start() == 1)
    #expect(progress.start() == nil)
  }

  @Test("Many ready steps start in the order in which they were added")
  func many() throws {
    let graph = Graph("g")
    for number in 0..<200 { graph.add(try op("Op\(number)", ["a"])) }
    graph.add(try op("AOp", gives: ["a"]))
    var (progress, _) = try progress(graph)
    #expect(progress.start() == 200)
    _ = progress.end(200, .succeeded)
    for number in 0..<200 { #expect(progress.start() == number) }
  }

  @Test("A circle is named with each op and key on it")
  func circle() throws {
    let graph = try Graph("g").add(op("AOp", ["c"], gives: ["a"])).add(
      op("BOp", ["a"], gives: ["b"])
    )
    .add(op("COp", ["b"], gives: ["c"])).add(op("OtherOp")).add(op("LateOp", ["c"]))
    let (_, plan) = try progress(graph)
    #expect(
      plan.problem
        == "its steps wait in a circle: [AOp] needs <c>, which [COp] gives; [COp] needs <b>, which [BOp] gives; [BOp] needs <a>, which [AOp] gives"
    )
  }

  @Test("What a flow needs and gives follows from its ops")
  func nested() throws {
    let flow = try Flow("inner").data("own", 1)
      .add(op("AOp", ["x", "own"], gives: ["a"]))
      .addParallel(op("BOp", ["a", "y?"], gives: ["b"]), op("COp", ["a"], gives: ["c"]))
      .case("kind", "one").add(op("DOp", ["b"], gives: ["d", "e"]))
      .otherwise().add(op("EOp", ["c"], gives: ["e"])).combine()
      .add(op("FOp", ["e", "d"]))
      .addGrouped(
        op("GOp", ["i", "z"], gives: ["r"]),
        GroupDispatcher(input: "list", output: "rs", as: "i", collect: "r")
      )
      .add(Graph("graph").add(op("IOp", ["h"])).add(op("HOp", gives: ["h"])))
      .addFinally(op("LastOp", ["w"]))
    let data = NestedData.of(flow)
    #expect(
      data.needs == [
        "x": false, "y": true, "kind": true, "d": false, "list": false, "z": false, "w": false,
      ])
    #expect(data.gives == ["a", "b", "c", "d", "e", "rs", "h"])
    let group = StepData(
      declaredBy: try op("GOp", ["i", "z"], gives: ["r"]),
      GroupDispatcher(input: "list", output: "rs", as: "i"))
    #expect(group.needs == ["list": false, "z": false])
    #expect(group.gives == ["rs"])
  }

  @Test(
    "Flows that use others twice, 30 levels deep, are read once each; a half that is declared counts"
  )
  func shared() throws {
    var flow = Flow("f0").add(try op("AOp", ["x"], gives: ["a"]))
    for level in 1...30 { flow = Flow("f\(level)").add(flow).add(flow) }
    #expect(NestedData.of(flow).needs == ["x": false])
    let half = Flow("half").needs(["m": "integer"]).add(try op("AOp", ["x"], gives: ["a"]))
    #expect(NestedData.of(half).needs == ["m": false])
    #expect(NestedData.of(half).gives == ["a"])
  }

  @Test("An op of a graph written in Swift fails when it reads or sets a key that isn't its own")
  func isolation() throws {
    let loop = makeLoop()
    let give = try op("AOp", gives: ["a"])
    let read = Op("ReadOp") { context in
      #expect(context.get(context.bucket.keys.intern("a")) == nil)
    }
    var run = Graph("g").add(give).add(read, after: [give]).start(on: loop)
    #expect(run.error?.kind == .usage)
    #expect(
      run.error?.message
        == "<a> isn't among the needs of [ReadOp]: in a graph it has to be, as [AOp] gives it")
    run = Graph("g").add(Op("SetOp") { $0.set("b", 1) }).start(on: loop)
    #expect(run.error?.message == "<b> isn't among the gives of [SetOp]: in a graph it has to be")
    #expect(run.data.get(loop.keys.intern("b")) == nil)
  }

  @Test("A secret stays one on its way through a graph")
  func secrets() {
    let loop = makeLoop()
    let give = Op("AOp", gives: ["token": "string"]) {
      $0.set("token", .secret("abcdefgh".flowValue))
    }
    let use = Op("UseOp", needs: ["token": "string"]) {
      $0.log("uses \($0.get($0.bucket.keys.intern("token"))?.logText ?? "")")
    }
    let run = Graph("g").add(use).add(give).start(on: loop)
    #expect(run.state == .succeeded)
    #expect(run.data.isSecret(loop.keys.intern("token")))
    #expect(!run.summary().description.contains("abcdefgh"))
  }
}
