/// The place of a step: the position in the log's records.
struct StepPlace {
  let step: Step
  let position: UInt32
}

/// Visits a flow's blueprint for a `BlueprintWalker`, step by step.
protocol BlueprintVisitor: AnyObject {
  /// Visits the start of a flow: the one that is walked, which has no place, or a nested one.
  /// Returns whether to visit its steps; only then is its end visited.
  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool
  func endFlow(_ flow: Flow, _ blueprint: Blueprint)
  /// Visits an op: a step, the member of a group, or the member of a parallel step.
  func visit(_ op: Op, _ place: StepPlace)
  /// Visits the start of a group; its op or flow comes next.
  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace)
  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace)
  /// Visits the start of a parallel step; `members` come next, each between a start and an end.
  func beginParallel(_ members: ArraySlice<Step>)
  func beginMember(_ number: Int)
  func endMember(_ number: Int)
  func endParallel()
  /// Visits the start of cases; the branches come next, each between a start and an end.
  func beginCases(_ block: CaseBlock, _ place: StepPlace)
  func beginBranch(_ number: Int)
  func endBranch(_ number: Int)
  func endCases()
  /// Visits the start of the final steps, each between a start and an end; not called when there
  /// are none.
  func beginFinally()
  func beginFinalStep()
  func endFinalStep()
  func endFinally()
  /// Whether the steps of a graph are visited in the order of its plan, those that wait for less first.
  var followsPlans: Bool { get }
  /// Visits the start of a graph's step; the step comes next, and then its end.
  func beginStep(_ number: Int, _ plan: GraphPlan)
  func endStep(_ number: Int)
  /// Visits the end of the last step of a graph.
  func endSteps()
}

extension BlueprintVisitor {
  var followsPlans: Bool { false }
  func beginStep(_ number: Int, _ plan: GraphPlan) {}
  func endStep(_ number: Int) {}
  func endSteps() {}
}

/// Walks a blueprint and the nested flows, in the order of the steps, at any depth of nesting.
/// Nothing is executed.
///
/// A flow must not contain itself, unless the visitor skips its steps.
struct BlueprintWalker {
  private let visitor: any BlueprintVisitor
  /// The blueprints at an earlier time; nil to use the present ones.
  private let snapshot: FlowSnapshot?
  private var frames: ContiguousArray<Frame> = []

  private struct Frame {
    let flow: Flow
    let blueprint: Blueprint
    var next = 0
    var end: Int
    var isInFinally = false
    /// The branch that is open, and the block that it belongs to.
    var branch: (block: Int, number: Int)?
    /// The members of the parallel step that is open.
    var members: Range<Int>?
    var isInMember = false
    /// The group whose flow was visited last.
    var group: (dispatcher: GroupDispatcher, place: StepPlace)?
    /// Set for a graph: the order of its steps, and whether the last one is open.
    var plan: GraphPlan?
    var order: ContiguousArray<Int>?
    var isInStep = false

    init(_ flow: Flow, _ blueprint: Blueprint) {
      self.flow = flow
      self.blueprint = blueprint
      end = blueprint.steps.count
    }
  }

  private init(_ visitor: any BlueprintVisitor, _ snapshot: FlowSnapshot?) {
    self.visitor = visitor
    self.snapshot = snapshot
  }

  /// Visits the content of `flow`: the present one or, as a run has kept them, `blueprint` and, for
  /// nested flows, `snapshot`.
  static func walk(
    _ flow: Flow, blueprint: Blueprint? = nil, snapshot: FlowSnapshot? = nil,
    _ visitor: any BlueprintVisitor
  ) {
    var walker = BlueprintWalker(visitor, snapshot)
    walker.enter(flow, blueprint ?? flow.blueprint, nil)
    while !walker.frames.isEmpty { walker.visitNext(walker.frames.count - 1) }
  }

  private mutating func enter(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) {
    guard visitor.beginFlow(flow, blueprint, place) else { return }
    var frame = Frame(flow, blueprint)
    if visitor.followsPlans { frame.plan = blueprint.plan(snapshot) }
    if let plan = frame.plan, plan.order.count == blueprint.steps.count {
      frame.order = plan.orderOfLevels
    }
    frames.append(frame)
  }

  private mutating func visitNext(_ top: Int) {
    if let (dispatcher, place) = frames[top].group {
      visitor.endGroup(dispatcher, place)
      frames[top].group = nil
    }
    if frames[top].isInStep {
      frames[top].isInStep = false
      visitor.endStep(place(of: frames[top].next - 1, top))
    }
    if let members = frames[top].members {
      visitNextMember(top, members)
    } else if frames[top].isInFinally {
      visitNextFinalStep(top)
    } else if frames[top].next < frames[top].end {
      let position = place(of: frames[top].next, top)
      frames[top].next += 1
      let step = frames[top].blueprint.steps[position]
      if let plan = frames[top].plan {
        visitor.beginStep(position, plan)
        frames[top].isInStep = true
      }
      visit(StepPlace(step: step, position: UInt32(truncatingIfNeeded: position)), top)
    } else if frames[top].plan != nil {
      visitor.endSteps()
      frames[top].plan = nil
    } else if let (block, number) = frames[top].branch {
      endBranch(top, block, number)
    } else if frames[top].blueprint.finally.isEmpty {
      leave()
    } else {
      visitor.beginFinally()
      frames[top].isInFinally = true
      frames[top].next = 0
    }
  }

  /// The position of the step that comes next.
  private func place(of number: Int, _ top: Int) -> Int { frames[top].order?[number] ?? number }

  private mutating func leave() {
    guard let frame = frames.popLast() else { return }
    visitor.endFlow(frame.flow, frame.blueprint)
  }

  private mutating func visit(_ place: StepPlace, _ top: Int) {
    switch place.step.kind {
    case .op: visitor.visit(place.step.op, place)
    case .flow: enter(place)
    case .group(let dispatcher):
      visitor.beginGroup(dispatcher, place)
      frames[top].group = (dispatcher, place)
      if place.step.op is Flow { enter(place) } else { visitor.visit(place.step.op, place) }
    case .parallel(let count):
      let members = frames[top].next..<frames[top].next + count
      frames[top].members = members
      visitor.beginParallel(frames[top].blueprint.steps[members])
    case .cases(let number):
      let block = frames[top].blueprint.cases[number]
      visitor.beginCases(block, place)
      beginBranch(top, number, 0)
    }
  }

  private mutating func enter(_ place: StepPlace) {
    guard let flow = place.step.op as? Flow else { return }
    enter(flow, snapshot?.blueprint(of: flow) ?? flow.blueprint, place)
  }

  // MARK: Groups, parallel steps, cases and final steps

  private mutating func visitNextMember(_ top: Int, _ members: Range<Int>) {
    if frames[top].isInMember {
      visitor.endMember(frames[top].next - members.lowerBound - 1)
      frames[top].isInMember = false
    }
    let position = frames[top].next
    guard members.contains(position) else {
      frames[top].members = nil
      visitor.endParallel()
      return
    }
    frames[top].next += 1
    frames[top].isInMember = true
    visitor.beginMember(position - members.lowerBound)
    let step = frames[top].blueprint.steps[position]
    visit(StepPlace(step: step, position: UInt32(truncatingIfNeeded: position)), top)
  }

  private mutating func beginBranch(_ top: Int, _ number: Int, _ branch: Int) {
    let blueprint = frames[top].blueprint
    let block = blueprint.cases[number]
    frames[top].branch = (number, branch)
    frames[top].next = block.branches[branch].first
    frames[top].end = block.end(of: branch, count: blueprint.steps.count)
    visitor.beginBranch(branch)
  }

  private mutating func endBranch(_ top: Int, _ number: Int, _ branch: Int) {
    let blueprint = frames[top].blueprint
    let block = blueprint.cases[number]
    visitor.endBranch(branch)
    if branch + 1 < block.branches.count {
      beginBranch(top, number, branch + 1)
      return
    }
    visitor.endCases()
    frames[top].branch = nil
    frames[top].next = block.end ?? blueprint.steps.count
    frames[top].end = blueprint.steps.count
  }

  private mutating func visitNextFinalStep(_ top: Int) {
    let steps = frames[top].blueprint.finally
    let index = frames[top].next
    if index > 0 { visitor.endFinalStep() }
    guard index < steps.count else {
      visitor.endFinally()
      leave()
      return
    }
    frames[top].next += 1
    visitor.beginFinalStep()
    let position = UInt32(truncatingIfNeeded: index) | Blueprint.finallyBit
    visit(StepPlace(step: steps[index], position: position), top)
  }
}
